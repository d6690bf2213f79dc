"""One connection to a database, whatever driver is behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

VALUE = "\0"
"""Stands in a statement where a value goes: no name can hold it, as one may hold a driver's own sign."""


class Session(Protocol):
    """Each statement is a transaction of its own, but for those within `transaction`."""

    def run(self, statement: str, values: Sequence[object] = ()) -> int:
        """How many rows it touched."""

    def ask(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]: ...

    def transaction(self) -> AbstractContextManager[object]: ...


class Commits(Protocol):
    """A driver's connection."""

    def commit(self) -> object: ...

    def rollback(self) -> object: ...


@contextmanager
def begun(db: Commits, begin: Callable[[], object]) -> Iterator[None]:
    """A transaction."""
    begin()
    try:
        yield
    except BaseException:
        db.rollback()
        raise
    db.commit()


def with_percents(statement: str, values: Sequence[object]) -> tuple[str, Sequence[object] | None]:
    """For drivers to which `%s` is a value, and `%` none of their business where there are no values."""
    if not values:
        return statement, None
    return statement.replace("%", "%%").replace(VALUE, "%s"), values


@dataclass(frozen=True)
class Dialect:
    """What databases write differently."""

    distinct: str
    """Of two expressions: that they differ, NULL being a value like any other."""
    insert_once: tuple[str, str] = ("INSERT INTO", "ON CONFLICT DO NOTHING")
    """Before and behind a row that is left out where its key is taken."""
    updates_join: bool = False
    """`UPDATE s JOIN t` in place of `UPDATE t … FROM s`."""
    lookup: str = "JOIN"
    """Of few rows with the table's, which are found by its key."""
    temporary: str = ""
    """Before TABLE where a temporary one is dropped."""
    compares_rows: bool = True
    """`(a, b) > (c, d)` is unknown where a NULL decides it."""
    has_indexes: bool = True
    """That are worth their cost beside what the database keeps of each stretch of a column anyway."""
    long_text: str = "text"
    table_options: str = ""
    """Behind the definition of a table."""


@dataclass(frozen=True)
class Staged:
    """Rows in a table of their own, under its quoted name."""

    table: str
    rows: int
