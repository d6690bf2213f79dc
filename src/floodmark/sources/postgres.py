"""Postgres: looked at through psycopg, read in parallel through JDBC, all readers in one exported snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark.errors import SourceError
from floodmark.model.plan import Look
from floodmark.model.position import Position, Scalar
from floodmark.model.spec import PipelineSpec
from floodmark.model.table import Column, Cursor, TableInfo
from floodmark.ports import LookRequest, ReadRequest
from floodmark.sources.bound import delayed, delayed_bound
from floodmark.sources.look import Probe
from floodmark.sources.postgres_connection import PostgresConnection
from floodmark.sources.postgres_types import COLUMNS, SESSION, PgColumn, wire_of
from floodmark.sources.sql import (
    CursorSql,
    local_time,
    next_cut,
    quote,
    split_name,
    text_literal,
    unknown_table,
    utc_time,
)
from floodmark.sources.wire import Wires, refuse_twins

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["PostgresConnection", "PostgresSource"]

ROWS_PER_PARTITION = 100_000
MOST_PARTITIONS = 8
"""Connections that one read may open when the user has not said."""

_TABLES = """
SELECT CASE WHEN n.nspname ~ '[."]' THEN quote_ident(n.nspname) ELSE n.nspname END || '.' ||
       CASE WHEN c.relname ~ '[."]' THEN quote_ident(c.relname) ELSE c.relname END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
ORDER BY 1 LIMIT 500
"""


class PostgresSource:
    def __init__(self, connection: PostgresConnection, spec: PipelineSpec, root: Path) -> None:  # noqa: ARG002
        self._connection = connection
        self._spec = spec
        self._name = spec.source.table
        self._db: psycopg.Connection[Any] | None = None

    @property
    def _table(self) -> str:
        return ".".join(quote(part) for part in split_name(self._name, self._spec.at("source.table")))

    # -- the database ---------------------------------------------------------------------------------------------

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        import psycopg

        if self._db is None:
            try:
                self._db = self._connection.connect()
            except SourceError as error:
                raise error.located(declared_at=self._spec.at("source.connection")) from error
        try:
            # No values, no placeholders: a literal may hold a percent sign.
            return self._db.execute(statement.encode(), values or None).fetchall()
        except psycopg.Error as error:
            reason = error.diag.message_primary or str(error).strip() or type(error).__name__
            raise SourceError(f"{self._name}: {reason}", table=self._name, hint=error.diag.message_hint) from error

    def _number(self, statement: str) -> int:
        return int(self._rows(statement)[0][0])

    def describe(self) -> TableInfo:
        return self._table_info(self._columns())

    def _columns(self) -> tuple[PgColumn, ...]:
        found = self._rows(COLUMNS, self._table)
        if not found:
            names = [row[0] for row in self._rows(_TABLES)]
            raise unknown_table(self._name, self._connection.where, names, self._spec.at("source.table"))
        return tuple(PgColumn(*row) for row in found)

    def _table_info(self, found: Sequence[PgColumn]) -> TableInfo:
        keys = sorted((c.key_place, c.name) for c in found if c.key_place)
        table = TableInfo(self._name, tuple(c.column for c in found), tuple(name for _, name in keys))
        return refuse_twins(table, self._spec.at("source.table"))

    def count_nulls(self, columns: Sequence[str]) -> int:
        where = " OR ".join(f"{quote(name)} IS NULL" for name in columns)
        return self._number(f"SELECT count(*) FROM {self._table} WHERE {where}")

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    # -- the look -------------------------------------------------------------------------------------------------

    def look(self, request: LookRequest) -> Look:
        cursor = request.cursor
        probe = Probe(
            self._cursor_sql(cursor),
            lambda statement: self._fetch(statement, cursor),
            self._number,
            self._checksum,
        )
        clock: datetime = self._rows("SELECT clock_timestamp()")[0][0].astimezone(UTC)
        guarantee = delayed(request.delay, "open transactions are not looked at")
        return probe.look(request, clock, lambda highest: delayed_bound(request, clock, highest), guarantee)

    def _checksum(self, where: str) -> str:
        row_hash = "hashtextextended(q::text, 0)::numeric"
        return str(self._rows(f"SELECT coalesce(sum({row_hash}), 0) FROM {self._table} q WHERE {where}")[0][0])

    def next_cut(self, cursor: Cursor, after: Position | None, until: Position, rows: int) -> Position | None:
        sql = self._cursor_sql(cursor)
        return next_cut(sql, lambda statement: self._fetch(statement, cursor), after, until, rows)

    def _cursor_sql(self, cursor: Cursor) -> CursorSql:
        return CursorSql(self._table, cursor, _literal)

    def _fetch(self, statement: str, cursor: Cursor) -> tuple[Scalar, ...] | None:
        import psycopg

        try:
            found = self._rows(statement)
        except SourceError as error:
            if not isinstance(error.__cause__, psycopg.DataError):
                raise
            # Postgres read it well: it is Python that has no such time.
            names = ", ".join(cursor.names)
            raise SourceError(
                f'column "{names}" of {self._name} holds a value that can\'t be a position: {error.__cause__}',
                table=self._name,
                column=names,
                declared_at=self._spec.at("change"),
                hint="times of a cursor lie in the years 1 to 9999: mend the row, or read a view that leaves it out",
            ) from error
        return None if not found else _scalars(found[0], cursor)

    # -- reading --------------------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self) -> Iterator[str | None]:
        """Held open by a connection of its own until the load is done: a task that Spark repeats sees the same rows."""
        db = self._connection.connect()
        try:
            db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            name = db.execute("SELECT pg_export_snapshot()").fetchone()
            yield None if name is None else name[0]
        finally:
            db.close()

    def read(self, spark: SparkSession, request: ReadRequest, snapshot: str | None) -> DataFrame:
        columns = self._columns()
        wires = Wires(self._table_info(columns), tuple(wire_of(c) for c in columns))
        select, where, predicates = wires.select, "true", [""]
        if request.cursor is not None:
            sql = self._cursor_sql(request.cursor)
            where = sql.bounds(request.after, request.until)
            predicates = self._partitions(sql, request)
            if len(predicates) > 1:  # Spark puts them around this query: there the cursor needs its own name and type
                select += f", {sql.columns}"
        address, properties = self._connection.jdbc
        # With a fetch size of 0 the driver would leave the transaction that the snapshot was set in.
        properties |= {"fetchsize": str(self._spec.source.fetch_size), "customSchema": wires.schema}
        properties["sessionInitStatement"] = SESSION
        if snapshot is not None:
            properties["sessionInitStatement"] = (
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; "
                f"SET TRANSACTION SNAPSHOT {text_literal(snapshot)}; {SESSION}"
            )
        query = f"(SELECT {select} FROM {self._table} WHERE {where}) q"
        if len(predicates) == 1:
            return wires.typed(spark.read.jdbc(address, query, properties=properties))
        return wires.typed(spark.read.jdbc(address, query, predicates=predicates, properties=properties))

    def _partitions(self, sql: CursorSql, request: ReadRequest) -> list[str]:
        """Ranges of the cursor that hold about as many rows each, by the real distribution."""
        rows = request.rows or 0
        wanted = self._spec.source.partitions or min(MOST_PARTITIONS, ceil(rows / ROWS_PER_PARTITION))
        if wanted <= 1 or rows < wanted:
            return [""]
        found = self._rows(sql.splits(request.after, request.until, ceil(rows / wanted)))
        return sql.partitions([Position.before(*_scalars(row, sql.cursor)) for row in found])


def _scalars(row: tuple[Any, ...], cursor: Cursor) -> tuple[Scalar, ...]:
    return tuple(
        utc_time(value, cursor) if isinstance(value, datetime) else value if isinstance(value, int) else str(value)
        for value in row
    )


def _literal(value: Scalar, column: Column, cursor: Cursor) -> str:
    if isinstance(value, datetime):
        if column.zoned:
            return f"TIMESTAMPTZ '{value.astimezone(UTC).isoformat(sep=' ', timespec='microseconds')}'"
        return f"TIMESTAMP '{local_time(value, cursor).isoformat(sep=' ', timespec='microseconds')}'"
    if isinstance(value, int):
        return str(value)
    return f"{text_literal(value)}::uuid" if column.declared == "uuid" else text_literal(value)
