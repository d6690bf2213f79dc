"""SQLite's own ways, for the SQL store: who waits for whom, and what its errors mean."""

from __future__ import annotations

import sqlite3
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from floodmark.state.ways import Trouble

BEGIN = "floodmark_begin"
"""Execution option: the statement that opens a transaction."""

POLL = 0.02

DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
HINTS = {
    "SQLITE_BUSY": "another process keeps it locked: wait for it, or see who it is with fuser",
    "SQLITE_READONLY": "it is write-protected: check the rights on the file and its folder",
    "SQLITE_CANTOPEN": "check the path and the rights on the folder, or point `state:` elsewhere",
    "SQLITE_FULL": "the disk is full: make room, then run again",
    "SQLITE_IOERR": "the disk is full, or it or the network share failed; SQLite needs a local disk",
}


def begin_with(*, writes: bool) -> dict[str, str]:
    """A writer takes its lock at once: one that reads first and writes then fails when another wrote in between."""
    return {BEGIN: "BEGIN IMMEDIATE" if writes else "BEGIN"}


def engine(url: URL, wait: timedelta) -> Engine:
    """Makes the folder. Several processes and threads may use the file at once."""
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    made = create_engine(url, connect_args={"timeout": wait.total_seconds()})

    @event.listens_for(made, "connect")
    def on_connect(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
        # The driver must not open transactions by itself: it would do so late, and never for reads.
        connection.isolation_level = None
        # The lease's epoch must not fall after a power cut, so each commit reaches the disk.
        connection.execute("PRAGMA synchronous=FULL")

    @event.listens_for(made, "begin")
    def on_begin(connection: Connection) -> None:
        statement = connection.get_execution_options().get(BEGIN, "BEGIN")
        if statement is not None:
            connection.exec_driver_sql(statement)

    return made


def prepare(made: Engine, wait: timedelta) -> None:
    """Switches to WAL, once per file. SQLite's own waiting does not cover it: when several begin at once, some fail."""
    deadline = time.monotonic() + wait.total_seconds()
    while True:
        try:
            with made.connect().execution_options(**{BEGIN: None}) as connection:
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            return
        except OperationalError as error:
            if _code(error) != "SQLITE_BUSY" or time.monotonic() > deadline:
                raise
            time.sleep(POLL)


def lock_creation(connection: Connection) -> None:
    """The writing transaction is lock enough: whoever comes second finds everything made."""


def trouble(error: SQLAlchemyError) -> Trouble:
    code = _code(error)
    return Trouble(HINTS.get(code), is_damage=code in DAMAGED, is_transient=code == "SQLITE_BUSY")


def _code(error: SQLAlchemyError) -> str:
    """The primary code: SQLITE_BUSY also for SQLITE_BUSY_SNAPSHOT."""
    cause: Any = error.orig if isinstance(error, DBAPIError) else error
    return "_".join(getattr(cause, "sqlite_errorname", "").split("_")[:2])
