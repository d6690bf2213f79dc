"""The own ways of MySQL and MariaDB, for the SQL store."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from floodmark.state.ways import Trouble

CONNECT_SECONDS = 10

GAVE_WAY = (1213,)
"""Deadlock. A lock that is waited for too long (1205) undoes the statement only, but we roll all of it back."""

AWAY = (1040, 1053, 1158, 1159, 1160, 1161, 1205, 1927, 2003, 2006, 2013, 2014, 4031)
"""Too many connections, shutdown, network, lock time-out, server gone."""

HINTS = {
    1040: "the server takes no more connections: wait, or raise max_connections",
    1044: "the user may not use this database: grant it CREATE, SELECT, INSERT, UPDATE and DELETE there",
    1045: "check user and password",
    1049: "create the database, or point `state:` at one that is there",
    1142: "the user may not do this: grant it CREATE, SELECT, INSERT, UPDATE and DELETE on the database",
    1205: "another session keeps it locked: see who it is with SHOW PROCESSLIST",
    1290: "this server is read-only, perhaps a replica: point `state:` at the primary",
    1021: "the server's disk is full: make room, then run again",
    1114: "the server's disk is full: make room, then run again",
    1836: "this server is read-only, perhaps a replica: point `state:` at the primary",
}


def engine(url: URL, wait: timedelta) -> Engine:
    seconds = max(1, round(wait.total_seconds()))
    if "charset" not in url.query:
        url = url.update_query_dict({"charset": "utf8mb4"})
    wanted = {
        "connect_timeout": CONNECT_SECONDS,
        # A server that vanished without a word is noticed, rather than waited for. Twice: it gives up on locks first.
        "read_timeout": 2 * seconds,
        "write_timeout": 2 * seconds,
        # Strict, or what is too long would be cut off in silence.
        "init_command": f"SET SESSION innodb_lock_wait_timeout = {seconds}, sql_mode = 'STRICT_ALL_TABLES'",
    }
    return create_engine(
        url,
        pool_pre_ping=True,
        # Under REPEATABLE READ a look for a lease that is not there locks the gap, and two runners deadlock on it.
        isolation_level="READ COMMITTED",
        connect_args={name: value for name, value in wanted.items() if name not in url.query},
    )


def begin_with(*, writes: bool) -> dict[str, str]:  # noqa: ARG001 - the same for both
    return {}


def prepare(made: Engine, wait: timedelta) -> None:
    """Nothing to prepare."""


def lock_creation(connection: Connection) -> None:
    """A CREATE TABLE commits by itself, so no lock would last; IF NOT EXISTS is enough here."""


def trouble(error: SQLAlchemyError) -> Trouble:
    number = _number(error)
    is_cut = isinstance(error, DBAPIError) and error.connection_invalidated
    hint = HINTS.get(number)
    if hint is None and number in AWAY:
        hint = "check that the server runs and can be reached, then run again"
    gave_way = number in GAVE_WAY
    return Trouble(hint, is_transient=is_cut or gave_way or number in AWAY, was_undone=gave_way)


def _number(error: SQLAlchemyError) -> int:
    cause: Any = error.orig if isinstance(error, DBAPIError) else None
    first = next(iter(getattr(cause, "args", ())), 0)
    return first if isinstance(first, int) else 0
