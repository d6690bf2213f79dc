"""Statements in a transaction: the same text for every database, with `?` for each value."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from floodmark.state.ways import Connection, Driver, Ways


class Taken(Exception):
    """A row with this key is there already."""


class Statements:
    def __init__(self, connection: Connection, ways: Ways, driver: Driver) -> None:
        self._connection = connection
        self._ways = ways
        self._driver = driver

    def name(self, text: str) -> str | bytes:
        """A value for a column of names."""
        return self._ways.to_name(text)

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(self._spelt(statement), values)
            return list(cursor.fetchall())

    def row(self, statement: str, *values: object, lock: bool = False) -> tuple[Any, ...] | None:
        """The first; with `lock` nobody else changes it until the transaction ends."""
        return next(iter(self.rows(statement + (self._ways.ROW_LOCK if lock else ""), *values)), None)

    def value(self, statement: str, *values: object) -> Any:
        """None where there is no row, or where it says so."""
        found = self.row(statement, *values)
        return None if found is None else found[0]

    def change(self, statement: str, *values: object) -> int:
        """How many rows."""
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(self._spelt(statement), values)
            return int(cursor.rowcount)

    def add(self, statement: str, *values: object) -> None:
        """Raises Taken."""
        try:
            self.change(statement, *values)
        except self._driver.IntegrityError as error:
            raise Taken from error

    def lock_creation(self) -> None:
        self._ways.lock_creation(self._connection)

    def _spelt(self, statement: str) -> str:
        return statement.replace("?", self._ways.PLACEHOLDER)
