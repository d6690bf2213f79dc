"""Postgres: looked at through psycopg, read in parallel through JDBC, all readers in one exported snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from floodmark.errors import SourceError
from floodmark.model.names import spark_name
from floodmark.model.plan import Look
from floodmark.model.position import Position, Scalar
from floodmark.model.spec import PipelineSpec
from floodmark.model.table import Column, Cursor, CursorKind, TableInfo, TableName
from floodmark.ports import LookRequest, ReadRequest
from floodmark.sources.bound import delayed, delayed_bound
from floodmark.sources.look import Probe
from floodmark.sources.postgres_catalog import SAMPLED, SIZE, TABLES, result_columns
from floodmark.sources.postgres_connection import PostgresConnection, may_pass
from floodmark.sources.relation import broken_query, check_names, relation_of
from floodmark.sources.split import FEWEST, SAMPLE, Split, cuts_from, key_of, readers, share, split_by
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

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["PostgresConnection", "PostgresSource"]

ROWS_PER_PAGE = 10
"""How much bigger a sample of whole pages must be: rows of one page lie close to each other."""

_KINDS: dict[str, CursorKind | Literal["date"]] = {
    "timestamp with time zone": "timestamp",
    "timestamp without time zone": "timestamp",
    "smallint": "integer",
    "integer": "integer",
    "bigint": "integer",
    "text": "text",
    "character varying": "text",
    "character": "text",
    "uuid": "text",
    "date": "date",
}

_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, NULL), a.attnotnull, a.atttypmod,
       coalesce(array_position((i.indkey::int[])[0:i.indnkeyatts - 1], a.attnum::int), 0)
FROM pg_attribute a
LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""

_TABLES = """
SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
ORDER BY 1 LIMIT 500
"""


class PostgresSource:
    def __init__(self, connection: PostgresConnection, spec: PipelineSpec, root: Path) -> None:  # noqa: ARG002
        self._connection = connection
        self._spec = spec
        self._relation = relation_of(spec, _quoted)
        self._name = self._relation.name
        self._db: psycopg.Connection[Any] | None = None

    # -- the database ---------------------------------------------------------------------------------------------

    def _connected(self) -> psycopg.Connection[Any]:
        if self._db is not None and self._db.closed:
            self._db = None
        if self._db is None:
            try:
                self._db = self._connection.connect()
            except SourceError as error:
                raise error.located(declared_at=self._spec.at("source.connection")) from error
        return self._db

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        import psycopg

        db = self._connected()
        try:
            # No values, no placeholders: a literal may hold a percent sign.
            return db.execute(statement.encode(), values or None).fetchall()
        except psycopg.Error as error:
            raise SourceError(
                f"{self._name}: {_reason(error)}",
                table=self._name,
                declared_at=self._relation.declared_at,
                hint=error.diag.message_hint,
                transient=may_pass(error),
            ) from error

    def _number(self, statement: str) -> int:
        return int(self._rows(statement)[0][0])

    def describe(self) -> TableInfo:
        if self._relation.table is None:
            return self._describe_query()
        found = self._rows(_COLUMNS, self._relation.table)
        if not found:
            names = [row[0] for row in self._rows(_TABLES)]
            raise unknown_table(self._name, self._connection.where, names, self._spec.at("source.table"))
        columns = tuple(_column(name, declared, notnull, modifier) for name, declared, notnull, modifier, _ in found)
        keys = sorted((place, name) for name, _, _, _, place in found if place)
        return TableInfo(self._name, columns, tuple(name for _, name in keys))

    def _describe_query(self) -> TableInfo:
        import psycopg

        try:
            found = result_columns(self._connected(), self._relation.sql)
        except psycopg.Error as error:
            if may_pass(error):
                raise SourceError(f"{self._name}: {_reason(error)}", transient=True) from error
            raise broken_query(_reason(error), self._relation) from error
        check_names([name for name, _, _ in found], self._relation)
        return TableInfo(self._name, tuple(_column(name, kind, False, modifier) for name, kind, modifier in found))

    def list_tables(self) -> list[TableName]:
        return [TableName(schema, name, schema == "public") for schema, name in self._rows(TABLES)]

    def count_nulls(self, columns: Sequence[str]) -> int:
        where = " OR ".join(f"{quote(name)} IS NULL" for name in columns)
        return self._number(f"SELECT count(*) FROM {self._relation.sql} WHERE {where}")

    def count(self, cursor: Cursor, after: Position | None, until: Position | None) -> int:
        return self._number(self._cursor_sql(cursor).count(after, until))

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
        return str(self._rows(f"SELECT coalesce(sum({row_hash}), 0) FROM {self._relation.sql} WHERE {where}")[0][0])

    def next_cut(self, cursor: Cursor, after: Position | None, until: Position, rows: int) -> Position | None:
        sql = self._cursor_sql(cursor)
        return next_cut(sql, lambda statement: self._fetch(statement, cursor), after, until, rows)

    def _cursor_sql(self, cursor: Cursor) -> CursorSql:
        return CursorSql(self._relation.sql, cursor, _literal)

    def _fetch(self, statement: str, cursor: Cursor) -> tuple[Scalar, ...] | None:
        found = self._rows(statement)
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
        table = self.describe()
        columns = [quote(name) for name in table.names]
        where = "true"
        if request.cursor is not None:
            where = self._cursor_sql(request.cursor).bounds(request.after, request.until)
        split = self._split(table, request, where)
        address, properties = self._connection.jdbc
        # With a fetch size of 0 the driver would leave the transaction that the snapshot was set in.
        properties |= {"fetchsize": str(self._spec.source.fetch_size), "preferTimestampNTZ": "true"}
        if snapshot is not None:
            properties["sessionInitStatement"] = (
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; "
                f"SET TRANSACTION SNAPSHOT {text_literal(snapshot)}"
            )
        query = f"(SELECT {', '.join([*columns, *split.columns])} FROM {self._relation.sql} WHERE {where}) q"
        if not split.predicates:
            return spark.read.jdbc(address, query, properties=properties)
        rows = spark.read.jdbc(address, query, predicates=list(split.predicates), properties=properties)
        return rows.select(*(spark_name(name) for name in table.names))

    def _split(self, table: TableInfo, request: ReadRequest, where: str) -> Split:
        """Ranges of the cursor, or of the primary key where the whole table is read, with about as many rows each.
        They share one snapshot, so a row that changes meanwhile can't slip from one range to another."""
        declared = self._spec.source.partitions
        if self._relation.query is not None and declared is None:
            return Split()  # each reader would run the query again
        axis = request.cursor or key_of(table)
        kind, size = (self._rows(SIZE, self._relation.table) or [("", 0)])[0] if self._relation.table else ("", 0)
        rows = request.rows if request.cursor is not None else size
        wanted = readers(declared, rows)
        if axis is None or rows is None or wanted <= 1:
            return Split()
        sql = self._cursor_sql(axis)
        sample: list[tuple[Any, ...]] = []
        pages = share(rows) * ROWS_PER_PAGE
        if kind in SAMPLED and rows * 20 > size and rows > SAMPLE * ROWS_PER_PAGE:
            some = f"{self._relation.table} q TABLESAMPLE SYSTEM ({min(100.0, pages * 100):.6f})"
            sample = self._rows(replace(sql, relation=some).sample(where, 1))
        if len(sample) < wanted * FEWEST:
            sample = self._rows(sql.sample(where, share(rows)))
        return split_by(sql, cuts_from([_scalars(row, axis) for row in sample], wanted))


def _quoted(name: str) -> str:
    return ".".join(quote(part) for part in split_name(name))


def _reason(error: psycopg.Error) -> str:
    return error.diag.message_primary or str(error).strip() or type(error).__name__


def _column(name: str, declared: str, notnull: bool, modifier: int) -> Column:
    zoned = declared == "timestamp with time zone"
    is_time = declared.startswith("timestamp")
    precision = modifier if is_time and modifier >= 0 else 6
    return Column(name, declared, _KINDS.get(declared, "other"), not notnull, zoned, precision)


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
