"""What the SQL store must know of a database beyond SQL: `sqlite.py`, `postgres.py` and `mysql.py` each say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from floodmark.state.address import Address


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


class Driver(Protocol):
    """As PEP 249 has it: sqlite3, psycopg, pymysql."""

    @property
    def Error(self) -> type[Exception]: ...

    @property
    def IntegrityError(self) -> type[Exception]: ...


Connection = Any
"""A driver's own: the three agree in cursor(), commit(), rollback() and close()."""


class Ways(Protocol):
    """Each a module of this room. Its driver is imported when it is asked for, and not before."""

    @property
    def PLACEHOLDER(self) -> str:
        """Stands for a value in a statement."""

    @property
    def ROW_LOCK(self) -> str:
        """After a SELECT: nobody else changes these rows until the transaction ends."""

    @property
    def HAS_META(self) -> str:
        """Asks for one number: 0 where there is no table `floodmark_meta`."""

    @property
    def TYPES(self) -> Mapping[str, str]:
        """What differs in the tables: see `tables.py`."""

    def driver(self) -> Driver:
        """Raises ModuleNotFoundError."""

    def connect(self, address: Address, wait: timedelta) -> Connection:
        """`wait` is the longest that anybody waits for a lock or an answer."""

    def is_alive(self, connection: Connection) -> bool:
        """Whether one that has lain idle still leads somewhere. May raise the driver's Error where it does not."""

    def begin(self, connection: Connection, wait: timedelta, *, writes: bool) -> None: ...

    def prepare(self, connection: Connection, wait: timedelta) -> None:
        """Once, before the tables are made."""

    def lock_creation(self, connection: Connection) -> None:
        """Keeps others from making the tables until this transaction ends, where `IF NOT EXISTS` is not enough."""

    def to_name(self, text: str) -> str | bytes:
        """As a column of names takes it."""

    def trouble(self, error: Exception) -> Trouble: ...
