"""A MySQL or MariaDB table. Spark's tasks bring the batch as text into a staging table, in parallel; from there the
server itself, which then refuses what does not fit, puts it into one with the table's own types. All that MySQL commits
by itself (DDL) lies before the one transaction that promotes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from floodmark.connections.mysql import MysqlConnection, driver, may_pass, reason
from floodmark.connections.names import quote
from floodmark.model.names import DELETED
from floodmark.model.spec import PipelineSpec
from floodmark.targets.database.names import Names, mark_in, new_mark
from floodmark.targets.database.server import ServerTarget
from floodmark.targets.database.session import VALUE, Dialect, Session, Staged, begun, with_percents
from floodmark.targets.database.staging import stage
from floodmark.targets.mysql.staging import ATTEMPT, Put
from floodmark.targets.mysql.types import KEYS, TYPES, as_text, from_text, spark_type

if TYPE_CHECKING:
    import pymysql
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

TABLES = "information_schema.tables"
OPTIONS = " ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
"""Two keys that differ only by case are two keys."""


@dataclass(frozen=True)
class MysqlSession:
    db: pymysql.Connection[Any]

    def run(self, statement: str, values: Sequence[object] = ()) -> int:
        with self.db.cursor() as cursor:
            return int(cursor.execute(*with_percents(statement, values)))

    def ask(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self.db.cursor() as cursor:
            cursor.execute(*with_percents(statement, values))
            return list(cursor.fetchall())

    def transaction(self) -> AbstractContextManager[None]:
        return begun(self.db, self.db.begin)


class MysqlTarget(ServerTarget):
    dialect = Dialect(
        distinct="NOT ({} <=> {})",
        insert_once=("INSERT IGNORE INTO", ""),
        updates_join=True,
        lookup="STRAIGHT_JOIN",  # left to itself the server may go over the whole table
        temporary="TEMPORARY ",  # any other DROP commits
        long_text="longtext",
        table_options=OPTIONS,
    )
    types = TYPES
    names = Names("MySQL", "`table` or `database.table`, each of at most 64 letters", lambda name: len(name) <= 64)

    def __init__(self, connection: MysqlConnection, spec: PipelineSpec, root: Path) -> None:  # noqa: ARG002
        self._connection = connection
        super().__init__(spec, connection.parts["database"])

    @property
    def resource(self) -> str:
        return f"mysql:{self._connection.where}/{self._schema}.{self._name}"

    def _fill(self, db: Session, batch: DataFrame, name: str) -> Staged:
        texts, typed = self._beside(name), self._beside(f"{name}t")
        fields = batch.schema.fields
        columns = ", ".join(f"c{place} longtext" for place in range(len(fields)))
        db.run(f"CREATE TABLE {texts} ({columns}, {ATTEMPT} bigint){OPTIONS}")
        put = Put(self._connection.keywords, self._connection.writing, texts, len(fields))
        told = stage(as_text(batch), put)
        names = ", ".join(quote(field.name) for field in fields)
        kept = ", ".join("nullif(1, 0) AS " * (field.name == DELETED) + quote(field.name) for field in fields)
        db.run(f"CREATE TABLE {typed}{OPTIONS} AS SELECT {kept} FROM {self._table} LIMIT 0")
        values = ", ".join(from_text(field, f"c{i}") for i, field in enumerate(fields))
        counted = ", ".join(map(str, told.attempts)) or "NULL"
        db.run(f"INSERT INTO {typed} ({names}) SELECT {values} FROM {texts} WHERE {ATTEMPT} IN ({counted})")
        return Staged(typed, told.rows)

    # -- the table ------------------------------------------------------------------------------------------------

    def _remarks(self) -> tuple[str, str]:
        """A comment tells a table from another of its name."""
        return "", f" COMMENT = '{new_mark()}'"

    def _table_id(self, db: Session, table: str) -> str | None:
        found = db.ask(
            f"SELECT table_comment FROM {TABLES} WHERE table_schema = {VALUE} AND table_name = {VALUE}",
            (self._schema, table),
        )
        return mark_in(found[0][0]) if found else None

    def _declared(self, db: Session) -> list[tuple[str, str]]:
        found = db.ask(
            "SELECT column_name, column_type FROM information_schema.columns "
            f"WHERE table_schema = {VALUE} AND table_name = {VALUE} ORDER BY ordinal_position",
            (self._schema, self._name),
        )
        return [(str(name), str(kind)) for name, kind in found]

    def _sql_type(self, kind: DataType, column: str) -> str:
        name = super()._sql_type(kind, column)
        return KEYS.get(name, name) if column in self._spec.target.keys else name

    def _spark_type(self, declared: str) -> DataType | None:
        return spark_type(declared)

    def _widening(self, column: str, kind: str) -> str:
        return f"MODIFY COLUMN {quote(column)} {kind}"

    def _check_writable(self, db: Session) -> None:
        """Known before anything is read."""
        user = self._connection.parts.get("user", "the user")
        if not db.ask(f"SELECT 1 FROM information_schema.schemata WHERE schema_name = {VALUE}", (self._schema,)):
            trouble = f"there is no database {self._schema}, or none that {user} may see"
            raise self._not_writable(f": {trouble}", f"CREATE DATABASE `{self._schema}`")
        if lacking := self._lacking(db):
            trouble = f"{user} may not {' nor '.join(lacking)} tables in {self._schema}"
            raise self._not_writable(f": {trouble}", f"GRANT {', '.join(lacking)} ON `{self._schema}`.* TO {user}")

    def _lacking(self, db: Session) -> list[str]:
        """Of the rights that only the whole database can give. What comes by a role is not told there: then the server
        will say."""
        ((me, role),) = db.ask("SELECT current_user(), current_role()")
        if role not in (None, "NONE"):
            return []
        grantee = "'{}'@'{}'".format(*str(me).rsplit("@", 1))
        given = db.ask(
            f"SELECT privilege_type FROM information_schema.user_privileges WHERE grantee = {VALUE} "
            "UNION SELECT privilege_type FROM information_schema.schema_privileges "
            f"WHERE grantee = {VALUE} AND {VALUE} LIKE table_schema ESCAPE {VALUE}",
            (grantee, grantee, self._schema, "\\"),
        )
        return sorted({"CREATE", "DROP"} - {str(right) for (right,) in given})

    # -- the server -----------------------------------------------------------------------------------------------

    @contextmanager
    def _opened(self) -> Iterator[MysqlSession]:
        db = self._connection.connect(writes=True)
        try:
            yield MysqlSession(db)
        finally:
            if db.open:
                db.close()

    def _driver_error(self) -> type[Exception]:
        return cast("type[Exception]", driver().Error)

    def _told(self, error: Exception) -> tuple[str, bool]:
        return reason(error), may_pass(error)
