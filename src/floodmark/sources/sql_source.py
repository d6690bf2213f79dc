"""What all SQL databases answer in the same way, once each has said how it runs a statement and writes a value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext

from floodmark.model.position import Position, Scalar
from floodmark.model.table import Cursor
from floodmark.ports import ReadRequest
from floodmark.sources.look import Probe
from floodmark.sources.relation import Relation
from floodmark.sources.sql import CursorSql, Dialect, next_cut


class SqlSource(ABC):
    _relation: Relation
    _dialect: Dialect = Dialect()

    @abstractmethod
    def _number(self, statement: str) -> int:
        """The one number that it returns."""

    @abstractmethod
    def _fetch(self, statement: str, cursor: Cursor) -> tuple[Scalar, ...] | None:
        """Its first row as cursor values."""

    @abstractmethod
    def _checksum(self, where: str) -> str:
        """Of whole rows."""

    @abstractmethod
    def _cursor_sql(self, cursor: Cursor) -> CursorSql: ...

    def nulls(self, cursor: Cursor, *, checksum: bool) -> tuple[int, str]:
        where = self._cursor_sql(cursor).nulls
        count = self._number(f"SELECT count(*) AS floodmark_n FROM {self._relation.sql} WHERE {where}")
        return count, self._checksum(where) if checksum and count else ""

    def count(self, cursor: Cursor, after: Position | None, until: Position | None) -> int:
        return self._number(self._cursor_sql(cursor).count(after, until))

    def next_cut(self, cursor: Cursor, after: Position | None, until: Position, rows: int) -> Position | None:
        return next_cut(self._cursor_sql(cursor), lambda text: self._fetch(text, cursor), after, until, rows)

    def _where(self, request: ReadRequest) -> str:
        if request.cursor is None:
            return "1 = 1"
        sql = self._cursor_sql(request.cursor)
        return sql.nulls if request.nulls else sql.bounds(request.after, request.until)

    def _probe(self, cursor: Cursor) -> Probe:
        sql = self._cursor_sql(cursor)
        return Probe(sql, lambda text: self._fetch(text, cursor), self._number, self._checksum, self._view)

    def _view(self) -> AbstractContextManager[None]:
        """All statements inside it see the rows of one moment, where the database can."""
        return nullcontext()
