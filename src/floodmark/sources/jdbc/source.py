"""Any other database, through its JDBC driver. There is no driver for Python, so Spark takes the look as well: this is
the one kind of source for which `plan` and a quiet run start a JVM. Standard SQL only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark.connections.names import split_name, text_literal
from floodmark.errors import SourceError
from floodmark.model.names import spark_name
from floodmark.model.plan import Look
from floodmark.model.position import Scalar
from floodmark.model.spec import PipelineSpec
from floodmark.model.table import Column, Cursor, TableInfo
from floodmark.ports import LookRequest, ReadRequest
from floodmark.sources.bound import delayed, delayed_bound
from floodmark.sources.jdbc.connection import JdbcConnection
from floodmark.sources.jdbc.errors import explained, refused_types, unknown_type
from floodmark.sources.jdbc.types import JdbcColumn, column_of, cursor_column, wire_of
from floodmark.sources.relation import check_names, relation_of
from floodmark.sources.sql import CursorSql, Dialect, fetch_first, local_time, utc_time
from floodmark.sources.sql_source import SqlSource
from floodmark.sources.wire import Wires, refuse_twins

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class JdbcSource(SqlSource):
    def __init__(self, connection: JdbcConnection, spec: PipelineSpec, root: Path) -> None:  # noqa: ARG002
        self._connection = connection
        self._spec = spec
        self._relation = relation_of(spec, lambda name: ".".join(map(connection.quoted, split_name(name))))
        self._name = self._relation.name
        self._dialect = Dialect(quote=connection.quoted, one_row=fetch_first, row_values=False)
        self._open: Callable[[], SparkSession] | None = None
        self._spark: SparkSession | None = None

    def attach(self, spark: Callable[[], SparkSession]) -> None:
        self._open = spark

    # -- the database ---------------------------------------------------------------------------------------------

    def _query(self, statement: str, spark: SparkSession | None = None, schema: str | None = None) -> DataFrame:
        """Spark asks the driver for the columns here already, so most mistakes show."""
        if spark is None:
            spark = self._session()
        options = {
            **self._connection.options,
            "preferTimestampNTZ": "true",
            "fetchsize": str(self._spec.source.fetch_size),
            "dbtable": f"({statement}) q",
        }
        if schema is not None:
            options["customSchema"] = schema
        with self._told():
            return spark.read.format("jdbc").options(**options).load()

    def _session(self) -> SparkSession:
        if self._spark is None:
            assert self._open is not None  # noqa: S101 - whoever makes a source attaches Spark to it
            self._spark = self._open()
        return self._spark

    def _rows(self, frame: DataFrame) -> list[Any]:
        with self._told():
            return frame.collect()

    @contextmanager
    def _told(self) -> Iterator[None]:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        try:
            yield
        except (PySparkException, Py4JError) as error:
            raise explained(error, self._relation, self._connection.where) from error

    def _number(self, statement: str) -> int:
        return int(self._rows(self._query(statement))[0][0])

    def describe(self) -> TableInfo:
        return self._wires(self._session()).table

    def _wires(self, spark: SparkSession) -> Wires:
        try:
            fields = self._query(f"SELECT * FROM {self._relation.sql}", spark).schema.fields
        except SourceError as error:
            if (kind := unknown_type(error.__cause__ or error)) is None:
                raise
            found = list(self._unreadable(spark))
            raise refused_types(found, kind, self._relation, self._connection.quote) from error
        check_names([field.name for field in fields], self._relation)
        return self._wires_of([column_of(field) for field in fields])

    def _unreadable(self, spark: SparkSession) -> Iterator[tuple[str, str]]:
        """Columns with their types, one by one: Spark says which type it can't read, not whose it is."""
        if self._relation.table is None:
            return
        *schema, table = split_name(self._name)
        where = f"table_name = {text_literal(table)}"
        where += f" AND table_schema = {text_literal(schema[-1])}" if schema else ""
        try:
            listed = f"SELECT column_name AS floodmark_name FROM information_schema.columns WHERE {where}"
            names = [row[0] for row in self._rows(self._query(listed, spark))]
        except SourceError:
            return  # the standard's catalogue, which not every database has
        for name in names:
            try:
                self._query(f"SELECT {self._connection.quoted(name)} FROM {self._relation.sql}", spark)
            except SourceError as error:
                if (kind := unknown_type(error.__cause__ or error)) is not None:
                    yield name, kind

    def _wires_of(self, columns: Sequence[JdbcColumn]) -> Wires:
        table = refuse_twins(TableInfo(self._name, tuple(c.column for c in columns)), self._relation.declared_at)
        return Wires(table, tuple(wire_of(c, self._connection.quoted(c.name)) for c in columns))

    def close(self) -> None:
        """The session is the project's."""
        self._spark = None

    # -- the look -------------------------------------------------------------------------------------------------

    def look(self, request: LookRequest) -> Look:
        cursor = request.cursor
        probe = self._probe(cursor)
        clock = self._clock()
        guarantee = delayed(request.delay, "open transactions can't be seen through JDBC")
        return probe.look(request, clock, lambda top: delayed_bound(request, clock, top), guarantee)

    def _clock(self) -> datetime:
        """The database's own, told beside any row of the table, since the standard knows no other way; without a row
        nothing hangs on it. One without a zone may be any zone's: then the earlier of both clocks, which can only make
        rows wait."""
        from pyspark.sql import functions as F

        here = datetime.now(UTC)
        frame = self._query(f"SELECT CURRENT_TIMESTAMP AS floodmark_now FROM {self._relation.sql} {fetch_first(0)}")
        name = frame.columns[0]
        zoned = frame.schema[0].dataType.typeName() == "timestamp"
        found = self._rows(frame.select(F.unix_micros(F.col(name).cast("timestamp"))))
        if not found:
            return here
        told = _EPOCH + timedelta(microseconds=found[0][0])
        return told if zoned else min(told, here)

    def _checksum(self, where: str) -> str:
        """Hashed by Spark, since databases have no hash function in common."""
        from pyspark.sql import functions as F

        wires = self._wires(self._session())
        rows = self._query(f"SELECT {wires.select} FROM {self._relation.sql} WHERE {where}", schema=wires.schema)
        row_hash = F.xxhash64(*(F.col(spark_name(name)) for name in rows.columns))
        return str(self._rows(rows.agg(F.sum(row_hash.cast("decimal(38,0)"))))[0][0] or 0)

    def _cursor_sql(self, cursor: Cursor) -> CursorSql:
        return CursorSql(self._relation.sql, cursor, _literal, self._dialect)

    def _fetch(self, statement: str, cursor: Cursor) -> tuple[Scalar, ...] | None:
        from pyspark.sql import functions as F

        wires = self._wires_of([cursor_column(c) for c in cursor.columns])
        frame = wires.typed(self._query(f"SELECT {wires.select} FROM ({statement}) c", schema=wires.schema))
        # A moment as a number: PySpark would show it in this machine's zone.
        values = [F.unix_micros(spark_name(c.name)) if c.zoned else F.col(spark_name(c.name)) for c in cursor.columns]
        found = self._rows(frame.select(*values))
        if not found:
            return None
        return tuple(_scalar(v, c, cursor) for v, c in zip(found[0], cursor.columns, strict=True))

    # -- reading --------------------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Nothing to share: one statement on one connection reads each batch."""
        yield None

    def read(self, spark: SparkSession, request: ReadRequest, snapshot: str | None) -> DataFrame:  # noqa: ARG002
        wires = self._wires(spark)
        where = self._where(request)
        rows = self._query(f"SELECT {wires.select} FROM {self._relation.sql} WHERE {where}", spark, wires.schema)
        return wires.typed(rows)


def _scalar(value: Any, column: Column, cursor: Cursor) -> Scalar:
    if column.zoned:
        return _EPOCH + timedelta(microseconds=value)
    if isinstance(value, datetime):
        return utc_time(value, cursor)
    return int(value) if isinstance(value, int | Decimal) else str(value)


def _literal(value: Scalar, column: Column, cursor: Cursor) -> str:
    if isinstance(value, datetime):
        zone = "+00:00" if column.zoned else ""
        wall = value.astimezone(UTC).replace(tzinfo=None) if column.zoned else local_time(value, cursor)
        return f"TIMESTAMP '{wall.isoformat(sep=' ', timespec='microseconds')}{zone}'"
    return str(value) if isinstance(value, int) else text_literal(value)
