"""What the SQL store must know of a database beyond SQL: `sqlite.py`, `postgres.py` and `mysql.py` each say it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError


@dataclass(frozen=True)
class Trouble:
    """What a driver's error means for the operator."""

    hint: str | None = None
    is_damage: bool = False
    """What is stored can't be read any more."""
    is_transient: bool = False
    """May well succeed if it is simply tried again."""
    was_undone: bool = False
    """The database itself picked this transaction as the one to give way: nothing of it is left, so doing it again is
    safe. Not so when the connection broke, for then the commit may have landed."""


class Ways(Protocol):
    """Each a module of this room."""

    def engine(self, url: URL, wait: timedelta) -> Engine:
        """Connects to nothing yet. `wait` is the longest that anybody waits for a lock or an answer."""

    def begin_with(self, *, writes: bool) -> dict[str, str]:
        """Execution options of a transaction."""

    def prepare(self, made: Engine, wait: timedelta) -> None:
        """Once, before the tables are made."""

    def lock_creation(self, connection: Connection) -> None:
        """Keeps others from making the tables until this transaction ends, where `IF NOT EXISTS` is not enough."""

    def trouble(self, error: SQLAlchemyError) -> Trouble: ...
