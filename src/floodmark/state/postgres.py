"""Postgres' own ways, for the SQL store."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from floodmark.state.ways import Trouble

WRITES = "floodmark_writes"
"""Execution option: this transaction will wait for locks, but not for ever."""

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


def engine(url: URL, wait: timedelta) -> Engine:
    seconds = max(1, round(wait.total_seconds()))
    wanted = {
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "floodmark",
        # A pooler between us and the server hands each transaction to another session, which has prepared nothing.
        "prepare_threshold": None,
        # A server that vanished without a word is noticed, rather than waited for.
        "tcp_user_timeout": seconds * 1000,
    }
    made = create_engine(
        url,
        pool_pre_ping=True,
        # Said outright: the fence reads a row under its lock and must see what was committed while it waited.
        isolation_level="READ COMMITTED",
        connect_args={name: value for name, value in wanted.items() if name not in url.query},
    )

    @event.listens_for(made, "begin")
    def on_begin(connection: Connection) -> None:
        if connection.get_execution_options().get(WRITES):
            # Local to the transaction, since a pooler's session is somebody else's next.
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{seconds}s'")

    return made


def begin_with(*, writes: bool) -> dict[str, str]:
    return {WRITES: "yes"} if writes else {}


def prepare(made: Engine, wait: timedelta) -> None:
    """Nothing to prepare."""


def lock_creation(connection: Connection) -> None:
    """CREATE TABLE IF NOT EXISTS fails when another session makes the same table at this moment."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": CREATION})


def trouble(error: SQLAlchemyError) -> Trouble:
    state = _sqlstate(error)
    hint = HINTS.get(state) or HINTS.get(state[:2])
    is_cut = isinstance(error, DBAPIError) and error.connection_invalidated
    # 08: connection; 53: resources; 57P: the server is going down or coming up. No state at all: it was not reached.
    is_away = state[:2] in ("08", "53") or state[:3] == "57P" or (not state and isinstance(error, DBAPIError))
    if not state and isinstance(error, DBAPIError):
        hint = next((words for pattern, words in TURNED_AWAY if pattern.search(str(error.orig))), None)
        is_away = hint is None
    if is_away and hint is None:
        hint = "check that the server runs and can be reached, then run again"
    gave_way = state in GAVE_WAY
    return Trouble(hint, is_transient=is_cut or is_away or gave_way or state == "55P03", was_undone=gave_way)


def _sqlstate(error: SQLAlchemyError) -> str:
    cause: Any = error.orig if isinstance(error, DBAPIError) else None
    return getattr(cause, "sqlstate", None) or ""
