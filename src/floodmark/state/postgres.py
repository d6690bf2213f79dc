"""Postgres' own ways, for the SQL store."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from floodmark.state.address import Address
from floodmark.state.tables import LONGEST_NAME
from floodmark.state.ways import Connection, Driver, Trouble

PLACEHOLDER = "%s"
ROW_LOCK = " FOR UPDATE"
HAS_META = "SELECT count(to_regclass('floodmark_meta'))"
TYPES = {"name": f"VARCHAR({LONGEST_NAME})", "body": "TEXT", "number": "BIGSERIAL NOT NULL", "options": ""}

CONNECT_SECONDS = 10

CREATION = 0x466C6F6F646D726B
"""Key of the advisory lock: «Floodmrk»."""

GAVE_WAY = ("40001", "40P01")
"""Serialization failure, deadlock."""

HINTS = {
    "25006": "this server is read-only, perhaps a replica: point `state:` at the primary",
    "28": "check user and password",
    "3D000": "create the database, or point `state:` at one that is there",
    "42501": "the role may not do this: grant it CREATE on the schema, or SELECT, INSERT, UPDATE, DELETE on the tables",
    "53100": "the server's disk is full: make room, then run again",
    "53300": "the server takes no more connections: wait, or raise max_connections",
    "55P03": "another session keeps it locked: see who it is in pg_stat_activity",
}
"""By SQLSTATE, or by its class."""


TURNED_AWAY = (
    (re.compile(r"password|authentication|pg_hba|role .* does not exist", re.I), HINTS["28"]),
    (re.compile(r"database .* does not exist", re.I), HINTS["3D000"]),
)
"""Who is turned away at the door gets no SQLSTATE from the driver, only the server's words."""


def driver() -> Driver:
    import psycopg

    return psycopg


def connect(address: Address, wait: timedelta) -> Connection:
    import psycopg

    seconds = _seconds(wait)
    wanted = {
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "floodmark",
        # A pooler between us and the server hands each transaction to another session, which has prepared nothing.
        "prepare_threshold": None,
        # A server that vanished without a word is noticed, rather than waited for.
        "tcp_user_timeout": seconds * 1000,
    }
    said: dict[str, Any] = {**address.parts(database="dbname"), **address.settings}
    connection = psycopg.connect(**{**wanted, **said})
    # Said outright: the fence reads a row under its lock and must see what was committed while it waited.
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    return connection


def is_alive(connection: Connection) -> bool:
    connection.autocommit = True
    connection.execute("")
    connection.autocommit = False
    return True


def begin(connection: Connection, wait: timedelta, *, writes: bool) -> None:
    """The driver opens the transaction with its first statement."""
    if writes:
        # Local to the transaction, since a pooler's session is somebody else's next.
        connection.execute(f"SET LOCAL lock_timeout = '{_seconds(wait)}s'")


def prepare(connection: Connection, wait: timedelta) -> None:
    """Nothing to prepare."""


def lock_creation(connection: Connection) -> None:
    """CREATE TABLE IF NOT EXISTS fails when another session makes the same table at this moment."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [CREATION])


def to_name(text: str) -> str:
    return text


def trouble(error: Exception) -> Trouble:
    state: str = getattr(error, "sqlstate", None) or ""
    hint = HINTS.get(state) or HINTS.get(state[:2])
    # 08: connection; 53: resources; 57P: the server is going down or coming up. No state at all: it was not reached.
    is_away = not state or state[:2] in ("08", "53") or state[:3] == "57P"
    if not state:
        hint = next((words for pattern, words in TURNED_AWAY if pattern.search(str(error))), None)
        is_away = hint is None
    if is_away and hint is None:
        hint = "check that the server runs and can be reached, then run again"
    gave_way = state in GAVE_WAY
    is_transient = _ended_session(error) or is_away or gave_way or state == "55P03"
    return Trouble(hint, is_transient=is_transient, was_undone=gave_way)


def _ended_session(error: Exception) -> bool:
    return getattr(getattr(error, "diag", None), "severity_nonlocalized", None) in ("FATAL", "PANIC")


def _seconds(wait: timedelta) -> int:
    return max(1, round(wait.total_seconds()))
