"""SQLite's own ways, for the SQL store: who waits for whom, and what its errors mean."""

from __future__ import annotations

import sqlite3
import time
from datetime import timedelta
from pathlib import Path

from floodmark.state.address import Address
from floodmark.state.tables import LONGEST_NAME
from floodmark.state.ways import Driver, Trouble

PLACEHOLDER = "?"
ROW_LOCK = ""
"""The writing transaction is lock enough."""
HAS_META = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'floodmark_meta'"
TYPES = {
    "name": f"VARCHAR({LONGEST_NAME})",
    "body": "TEXT",
    # SQLite numbers rows by itself only in a column that is exactly INTEGER.
    "number": "INTEGER NOT NULL",
    "options": "",
}

POLL = 0.02

DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
HINTS = {
    "SQLITE_BUSY": "another process keeps it locked: wait for it, or see who it is with fuser",
    "SQLITE_READONLY": "it is write-protected: check the rights on the file and its folder",
    "SQLITE_CANTOPEN": "check the path and the rights on the folder, or point `state:` elsewhere",
    "SQLITE_FULL": "the disk is full: make room, then run again",
    "SQLITE_IOERR": "the disk is full, or it or the network share failed; SQLite needs a local disk",
}


def driver() -> Driver:
    return sqlite3


def connect(address: Address, wait: timedelta) -> sqlite3.Connection:
    """Makes the folder. Several processes and threads may use the file at once."""
    path = address.database or ":memory:"
    if address.database:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    # The driver must not open transactions by itself: it would do so late, and never for reads. And one thread may give
    # back what another takes, since only one at a time has it.
    connection = sqlite3.connect(path, timeout=wait.total_seconds(), isolation_level=None, check_same_thread=False)
    # The lease's epoch must not fall after a power cut, so each commit reaches the disk.
    connection.execute("PRAGMA synchronous=FULL")
    return connection


def is_alive(connection: sqlite3.Connection) -> bool:  # noqa: ARG001 - a file is always there
    return True


def begin(connection: sqlite3.Connection, wait: timedelta, *, writes: bool) -> None:  # noqa: ARG001 - the port's
    """A writer takes its lock at once: one that reads first and writes then fails when another wrote in between."""
    connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")


def prepare(connection: sqlite3.Connection, wait: timedelta) -> None:
    """Switches to WAL, once per file. SQLite's own waiting does not cover it: when several begin at once, some fail."""
    deadline = time.monotonic() + wait.total_seconds()
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if _code(error) != "SQLITE_BUSY" or time.monotonic() > deadline:
                raise
            time.sleep(POLL)


def lock_creation(connection: sqlite3.Connection) -> None:
    """The writing transaction is lock enough: whoever comes second finds everything made."""


def to_name(text: str) -> str:
    return text


def trouble(error: Exception) -> Trouble:
    code = _code(error)
    return Trouble(HINTS.get(code), is_damage=code in DAMAGED, is_transient=code == "SQLITE_BUSY")


def _code(error: Exception) -> str:
    """The primary code: SQLITE_BUSY also for SQLITE_BUSY_SNAPSHOT."""
    return "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])
