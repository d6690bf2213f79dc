"""Postgres: looked at through psycopg, read in parallel through JDBC, all readers in one exported snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark.connections.names import quote, split_name, text_literal
from floodmark.connections.postgres import READ_ONLY, PostgresConnection, driver, may_pass
from floodmark.errors import SourceError
from floodmark.model.plan import Look
from floodmark.model.position import Scalar
from floodmark.model.spec import PipelineSpec
from floodmark.model.table import Column, Cursor, TableInfo, TableName
from floodmark.ports import LookRequest, ReadRequest
from floodmark.sources.postgres.catalog import SAMPLED, SIZE, TABLES, described
from floodmark.sources.postgres.fence import MARK_READER
from floodmark.sources.postgres.look import PostgresLook
from floodmark.sources.postgres.types import COLUMNS, RESULT, SESSION, PgColumn, wire_of
from floodmark.sources.relation import broken_query, check_names, relation_of
from floodmark.sources.split import FEWEST, SAMPLE, Split, cuts_from, key_of, readers, share, split_by
from floodmark.sources.sql import CursorSql, local_time, unknown_table, utc_time
from floodmark.sources.sql_source import SqlSource
from floodmark.sources.wire import Wires, refuse_twins

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import DataFrame, SparkSession

OURS = 2
"""Sessions of a run that read no rows: the look's, and the one that holds the snapshot."""

ROWS_PER_PAGE = 10
"""How much bigger a sample of whole pages must be: rows of one page lie close to each other."""

_TABLES = """
SELECT CASE WHEN n.nspname ~ '[."]' THEN quote_ident(n.nspname) ELSE n.nspname END || '.' ||
       CASE WHEN c.relname ~ '[."]' THEN quote_ident(c.relname) ELSE c.relname END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
ORDER BY 1 LIMIT 500
"""


class PostgresSource(SqlSource):
    def __init__(self, connection: PostgresConnection, spec: PipelineSpec, root: Path) -> None:  # noqa: ARG002
        self._connection = connection
        self._spec = spec
        self._relation = relation_of(spec, _quoted)
        self._name = self._relation.name
        self._db: psycopg.Connection[Any] | None = None
        self._primary: psycopg.Connection[Any] | None = None

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
        return self._rows_on(self._connected(), statement, values)

    def _rows_of_primary(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        if self._primary is None or self._primary.closed:
            self._primary = self._connection.of_fence.connect()
        return self._rows_on(self._primary, statement, values)

    def _rows_on(
        self, db: psycopg.Connection[Any], statement: str, values: tuple[object, ...]
    ) -> list[tuple[Any, ...]]:
        psycopg = driver()
        try:
            # No values, no placeholders: a literal may hold a percent sign.
            cursor = db.execute(statement.encode(), values or None)
            return [] if cursor.description is None else cursor.fetchall()
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
        return self._table_info(self._columns())

    def _columns(self) -> tuple[PgColumn, ...]:
        if self._relation.table is None:
            return self._columns_of_query()
        found = self._rows(COLUMNS, self._relation.table)
        if not found:
            names = [row[0] for row in self._rows(_TABLES)]
            raise unknown_table(self._name, self._connection.where, names, self._spec.at("source.table"))
        return tuple(PgColumn(*row) for row in found)

    def _table_info(self, found: Sequence[PgColumn]) -> TableInfo:
        keys = sorted((c.key_place, c.name) for c in found if c.key_place)
        table = TableInfo(self._name, tuple(c.column for c in found), tuple(name for _, name in keys))
        return refuse_twins(table, self._relation.declared_at)

    def _columns_of_query(self) -> tuple[PgColumn, ...]:
        psycopg = driver()
        try:
            names, types, modifiers = described(self._connected(), self._relation.sql)
        except psycopg.Error as error:
            if may_pass(error):
                raise SourceError(f"{self._name}: {_reason(error)}", transient=True) from error
            raise broken_query(_reason(error), self._relation) from error
        check_names(names, self._relation)
        return tuple(PgColumn(*row) for row in self._rows(RESULT, names, types, modifiers))

    def list_tables(self) -> list[TableName]:
        return [TableName(schema, name, schema == "public") for schema, name in self._rows(TABLES)]

    def grants(self) -> list[str]:
        parts = self._connection.parts
        role = quote(parts.get("user") or "floodmark")
        lines = [f"GRANT CONNECT ON DATABASE {quote(parts.get('database') or role)} TO {role};"]
        if self._relation.query is not None:
            lines.append(f"GRANT pg_read_all_stats TO {role};")
            return [*lines, f"-- {self._spec.name}: USAGE and SELECT on what the query reads"]
        *schema, table = split_name(self._name)
        schema = schema or ["public"]
        # To see what other sessions do: a script of several transactions looks idle between two of them.
        lines.append(f"GRANT pg_read_all_stats TO {role};")
        lines.append(f"GRANT USAGE ON SCHEMA {quote(schema[-1])} TO {role};")
        return [*lines, f"GRANT SELECT ON {quote(schema[-1])}.{quote(table)} TO {role};"]

    def close(self) -> None:
        for db in (self._db, self._primary):
            if db is not None:
                db.close()
        self._db = self._primary = None

    # -- the look -------------------------------------------------------------------------------------------------

    def look(self, request: LookRequest) -> Look:
        own = self._connected().info.backend_pid
        there = None if self._connection.fence_url is None else self._rows_of_primary
        fenced = PostgresLook(self._relation, self._rows, there, own).fenced(request)
        bound = partial(fenced.bound, request)
        seen = fenced.server.seen
        return self._probe(request.cursor).look(request, seen.clock, bound, fenced.guarantee(request), seen)

    @contextmanager
    def _view(self) -> Iterator[None]:
        db = self._connected()
        self._rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            self._rows(MARK_READER)
            yield
        finally:
            if not db.closed:
                db.execute("ROLLBACK")

    def _checksum(self, where: str) -> str:
        row_hash = "hashtextextended(q::text, 0)::numeric"
        return str(self._rows(f"SELECT coalesce(sum({row_hash}), 0) FROM {self._relation.sql} WHERE {where}")[0][0])

    def _cursor_sql(self, cursor: Cursor) -> CursorSql:
        return CursorSql(self._relation.sql, cursor, _literal)

    def _fetch(self, statement: str, cursor: Cursor) -> tuple[Scalar, ...] | None:
        psycopg = driver()
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
            self._rows_on(db, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ())
            self._rows_on(db, MARK_READER, ())
            yield str(self._rows_on(db, "SELECT pg_export_snapshot()", ())[0][0])
        finally:
            db.close()

    @property
    def _session_of_readers(self) -> str:
        return f"{SESSION}; {READ_ONLY}; {self._connection.limits}; {MARK_READER}"

    def read(self, spark: SparkSession, request: ReadRequest, snapshot: str | None) -> DataFrame:
        columns = self._columns()
        table = self._table_info(columns)
        wires = Wires(table, tuple(wire_of(c) for c in columns))
        where = self._where(request)
        split = self._split(table, request, where)
        address, properties = self._connection.jdbc
        # With a fetch size of 0 the driver would leave the transaction that the snapshot was set in.
        properties |= {"fetchsize": str(self._spec.source.fetch_size), "customSchema": wires.schema}
        properties["sessionInitStatement"] = session = self._session_of_readers
        if snapshot is not None:
            properties["sessionInitStatement"] = (
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; "
                f"SET TRANSACTION SNAPSHOT {text_literal(snapshot)}; {session}"
            )
        query = f"(SELECT {', '.join([wires.select, *split.columns])} FROM {self._relation.sql} WHERE {where}) q"
        if not split.predicates:
            return wires.typed(spark.read.jdbc(address, query, properties=properties))
        rows = spark.read.jdbc(address, query, predicates=list(split.predicates), properties=properties)
        return wires.typed(rows)

    def _split(self, table: TableInfo, request: ReadRequest, where: str) -> Split:
        """Ranges of the cursor, or of the primary key where the whole table is read, with about as many rows each.
        They share one snapshot, so a row that changes meanwhile can't slip from one range to another."""
        declared = self._spec.source.partitions
        if self._relation.query is not None and declared is None:
            return Split()  # each reader would run the query again
        axis = request.cursor or key_of(table)
        kind, size = (self._rows(SIZE, self._relation.table) or [("", 0)])[0] if self._relation.table else ("", 0)
        rows = request.rows if request.cursor is not None else size
        wanted = min(readers(declared, rows), self._connection.max_connections - OURS)
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
