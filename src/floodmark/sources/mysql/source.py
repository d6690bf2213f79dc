"""MySQL and MariaDB: looked at through pymysql, read through JDBC. Several readers can't share a snapshot here, so they
share out the rows by primary key, which a row keeps whatever else changes (docs/decisions/0005)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark.connections.mysql import MysqlConnection, driver, may_pass, reason
from floodmark.connections.names import split_name
from floodmark.errors import SourceError
from floodmark.model.plan import Look
from floodmark.model.position import Scalar
from floodmark.model.spec import PipelineSpec
from floodmark.model.table import Column, Cursor, TableInfo, TableName
from floodmark.ports import LookRequest, ReadRequest
from floodmark.sources.fence import OFF, Fence
from floodmark.sources.mysql import fence as mysql_fence
from floodmark.sources.mysql.catalog import ALL_TABLES, BASE_TABLES, UNKNOWN, column, result_column
from floodmark.sources.mysql.fence import NO_PROCESS, MysqlWriters
from floodmark.sources.mysql.types import MysqlType, type_of, wire_of
from floodmark.sources.relation import broken_query, check_names, relation_of
from floodmark.sources.split import Split, cuts_from, key_of, readers, share, split_by
from floodmark.sources.sql import CursorSql, Dialect, local_time, unknown_table, utc_time
from floodmark.sources.sql_source import SqlSource
from floodmark.sources.wire import Wires, refuse_twins

if TYPE_CHECKING:
    import pymysql
    from pyspark.sql import DataFrame, SparkSession


def quote(name: str) -> str:
    """Backticks, which name a column under every sql_mode."""
    return "`" + name.replace("`", "``") + "`"


# Row values are compared rightly, but without any index.
DIALECT = Dialect(quote=quote, row_values=False, random="rand()")


class MysqlSource(SqlSource):
    _dialect = DIALECT

    def __init__(self, connection: MysqlConnection, spec: PipelineSpec, root: Path) -> None:  # noqa: ARG002
        self._connection = connection
        self._spec = spec
        self._relation = relation_of(spec, _quoted)
        self._name = self._relation.name
        self._db: pymysql.Connection[Any] | None = None

    # -- the database ---------------------------------------------------------------------------------------------

    def _execute(self, statement: str) -> Any:
        """The cursor. Raises the driver's own errors, once connected."""
        if self._db is None:
            try:
                self._db = self._connection.connect()
            except SourceError as error:
                raise error.located(declared_at=self._spec.at("source.connection")) from error
        cursor = self._db.cursor()
        try:
            cursor.execute(statement)
        except Exception as error:
            if may_pass(error):
                self.close()  # what was cut off is opened anew by the next call
            raise
        return cursor

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        pymysql = driver()
        try:
            return list(self._execute(statement).fetchall())
        except pymysql.Error as error:
            raise SourceError(
                f"{self._name}: {reason(error)}",
                table=self._name,
                declared_at=self._relation.declared_at,
                transient=may_pass(error),
            ) from error

    def _number(self, statement: str) -> int:
        return int(self._rows(statement)[0][0])

    def describe(self) -> TableInfo:
        pymysql = driver()
        table, place = self._relation.table, self._relation.declared_at
        if table is None:
            return self._describe_query()
        try:
            found = self._execute(f"SHOW COLUMNS FROM {table}").fetchall()
        except pymysql.Error as error:
            if error.args[0] in UNKNOWN:
                raise unknown_table(self._name, self._connection.where, self._known(), place) from error
            raise SourceError(f"{self._name}: {reason(error)}", table=self._name, transient=may_pass(error)) from error
        indexes = self._rows(f"SHOW INDEX FROM {table}")
        leading = {row[4] for row in indexes if row[3] == 1}
        columns = tuple(
            replace(column(name, kind, null == "YES", self._name, place), indexed=name in leading)
            for name, kind, null, *_ in found
        )
        keys = sorted((row[3], row[4]) for row in indexes if row[2] == "PRIMARY")
        return refuse_twins(TableInfo(self._name, columns, tuple(name for _, name in keys)), place)

    def _describe_query(self) -> TableInfo:
        pymysql = driver()
        try:
            cursor = self._execute(f"SELECT * FROM {self._relation.sql} LIMIT 0")
        except pymysql.Error as error:
            if may_pass(error):
                raise SourceError(f"{self._name}: {reason(error)}", transient=True) from error
            raise broken_query(reason(error), self._relation) from error
        fields = cursor._result.fields
        check_names([field.name for field in fields], self._relation)
        return TableInfo(self._name, tuple(result_column(field, self._relation.declared_at) for field in fields))

    def _known(self) -> list[str]:
        own = self._connection.parts["database"]
        return [name if schema == own else f"{schema}.{name}" for schema, name in self._rows(ALL_TABLES)]

    def list_tables(self) -> list[TableName]:
        own = self._connection.parts["database"]
        return [TableName(schema, name, schema == own) for schema, name in self._rows(BASE_TABLES)]

    def grants(self) -> list[str]:
        parts, user = self._connection.parts, self._user
        if self._relation.query is not None:
            return [f"-- {self._spec.name}: SELECT on what the query reads", self._process_grant]
        *schema, table = split_name(self._name)
        database = schema[-1] if schema else parts["database"]
        return [f"GRANT SELECT ON {quote(database)}.{quote(table)} TO {user};", self._process_grant]

    @property
    def _user(self) -> str:
        return "'" + (self._connection.parts.get("user") or "floodmark").replace("'", "''") + "'@'%'"

    @property
    def _process_grant(self) -> str:
        """To see who may still write."""
        return f"GRANT PROCESS ON *.* TO {self._user};"

    def close(self) -> None:
        if self._db is not None:
            with suppress(Exception):  # it may have been cut off already
                self._db.close()
            self._db = None

    # -- the look -------------------------------------------------------------------------------------------------

    def look(self, request: LookRequest) -> Look:
        clock: datetime = self._rows("SELECT utc_timestamp(6)")[0][0].replace(tzinfo=UTC)
        fence = self._fence(request)
        bound = partial(fence.bound, request, clock)
        server = mysql_fence.seen(self._rows, clock)
        return self._probe(request.cursor).look(request, clock, bound, fence.guarantee(request.delay), server)

    def _fence(self, request: LookRequest) -> Fence:
        if request.fence == "off":
            return Fence(None, (OFF,))
        if not self._may_list():
            return Fence(None, (replace(NO_PROCESS, fix=self._process_grant),))
        caveats = [*mysql_fence.server_caveats(self._rows)]
        caveats += mysql_fence.engine_caveats(self._rows, self._relation.table)
        if request.cursor.leading.kind == "timestamp":
            caveats += mysql_fence.zone_caveats(request.cursor)
        elif request.fence == "auto":
            caveats += mysql_fence.sequence_caveats(self._rows, self._relation.table, request.cursor)
        return Fence(self._list_writers, tuple(caveats))

    def _may_list(self) -> bool:
        pymysql = driver()
        try:
            self._execute(mysql_fence.NEEDS_PROCESS)
        except pymysql.Error as error:
            if error.args[0] in mysql_fence.DENIED:
                return False
            raise SourceError(f"{self._name}: {reason(error)}", table=self._name, transient=may_pass(error)) from error
        return True

    def _list_writers(self) -> MysqlWriters | None:
        pymysql = driver()
        try:
            return mysql_fence.list_writers(self._connection.connect)
        except pymysql.Error as error:
            raise SourceError(f"{self._name}: {reason(error)}", table=self._name, transient=may_pass(error)) from error

    @contextmanager
    def _view(self) -> Iterator[None]:
        self._rows("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self._rows("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        try:
            yield
        finally:
            if self._db is not None:
                self._rows("ROLLBACK")

    def _checksum(self, where: str) -> str:
        """Each value by its own hash: all of them in one text could be longer than the server's packets."""
        hashes = ", ".join(f"ifnull(md5({_selected(c)}), '~')" for c in self.describe().columns)
        number = f"cast(conv(left(md5(concat({hashes})), 15), 16, 10) AS decimal(20, 0))"
        return str(self._rows(f"SELECT coalesce(sum({number}), 0) FROM {self._relation.sql} WHERE {where}")[0][0])

    def _cursor_sql(self, cursor: Cursor) -> CursorSql:
        return CursorSql(self._relation.sql, cursor, _literal, self._dialect)

    def _fetch(self, statement: str, cursor: Cursor) -> tuple[Scalar, ...] | None:
        found = self._rows(statement)
        return None if not found else self._scalars(found[0], cursor)

    def _scalars(self, row: tuple[Any, ...], cursor: Cursor) -> tuple[Scalar, ...]:
        return tuple(self._scalar(v, c, cursor) for v, c in zip(row, cursor.columns, strict=True))

    def _scalar(self, value: Any, column: Column, cursor: Cursor) -> Scalar:
        if isinstance(value, datetime):
            return utc_time(value if not column.zoned else value.replace(tzinfo=UTC), cursor)
        if column.kind == "timestamp":
            raise SourceError(
                f'column "{column.name}" of {self._name} holds {value}, which is no time',
                table=self._name,
                column=column.name,
                value=value,
                declared_at=self._spec.at("change.column") or self._spec.at("change"),
                hint="make it NULL or a real time: a zero date has no place among the others",
            )
        return value if isinstance(value, int) else str(value)

    # -- reading --------------------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """MySQL can't hand one view of the data to another connection: see `_split`."""
        yield None

    def read(self, spark: SparkSession, request: ReadRequest, snapshot: str | None) -> DataFrame:  # noqa: ARG002
        table = self.describe()
        wires = Wires(table, tuple(wire_of(c, quote(c.name)) for c in table.columns))
        where = self._where(request)
        split = Split() if request.cursor is None else self._split(table, request, where)
        address, properties = self._connection.jdbc
        properties |= {"fetchsize": str(self._spec.source.fetch_size), "customSchema": wires.schema}
        query = f"(SELECT {', '.join([wires.select, *split.columns])} FROM {self._relation.sql} WHERE {where}) q"
        if not split.predicates:
            return wires.typed(spark.read.jdbc(address, query, properties=properties))
        return wires.typed(spark.read.jdbc(address, query, predicates=list(split.predicates), properties=properties))

    def _split(self, table: TableInfo, request: ReadRequest, where: str) -> Split:
        """By primary key only: each reader sees a moment of its own, and between two moments a row may get another
        cursor value, and would be read twice or not at all; but never another key."""
        key, rows = key_of(table), request.rows
        wanted = min(readers(self._spec.source.partitions, rows), self._connection.max_connections - 1)
        if key is None or rows is None or wanted <= 1:
            return Split()
        sql = self._cursor_sql(key)
        sample = [self._scalars(row, key) for row in self._rows(sql.sample(where, share(rows)))]
        return split_by(sql, cuts_from(sample, wanted))


def _quoted(name: str) -> str:
    return ".".join(quote(part) for part in split_name(name))


def _type(column: Column) -> MysqlType:
    found = type_of(column.declared)
    assert found is not None  # noqa: S101 - describe has refused what can't be carried
    return found


def _selected(column: Column) -> str:
    return _type(column).select.format(quote(column.name))


def _literal(value: Scalar, column: Column, cursor: Cursor) -> str:
    if isinstance(value, datetime):
        wall = value.astimezone(UTC).replace(tzinfo=None) if column.zoned else local_time(value, cursor)
        return f"TIMESTAMP'{wall.isoformat(sep=' ', timespec='microseconds')}'"
    if isinstance(value, int):
        return str(value)
    if "\\" in value:
        return f"_utf8mb4 X'{value.encode().hex()}'"  # what a backslash means is up to the sql_mode
    return "'" + value.replace("'", "''") + "'"
