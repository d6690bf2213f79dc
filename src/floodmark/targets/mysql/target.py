"""A MySQL or MariaDB table. Spark's tasks bring the batch as text into a staging table, in parallel; from there the
server itself, which then refuses what does not fit, puts it into one with the table's own types. All that MySQL commits
by itself (DDL) lies before the one transaction that promotes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from floodmark.connections.mysql import MysqlConnection, driver, may_pass, reason
from floodmark.connections.names import quote, split_name
from floodmark.errors import ConfigError, SourceError, TargetError
from floodmark.model.names import DELETED
from floodmark.model.spec import PipelineSpec
from floodmark.targets.database.session import VALUE, Dialect, Session, Staged
from floodmark.targets.database.staging import stage
from floodmark.targets.database.target import DatabaseTarget
from floodmark.targets.mysql.staging import ATTEMPT, Put
from floodmark.targets.mysql.types import KEYS, TYPES, as_text, from_text, spark_type

if TYPE_CHECKING:
    import pymysql
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

TABLES = "information_schema.tables"
LONGEST_NAME = 64
OPTIONS = " ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
"""Two keys that differ only by case are two keys."""


@dataclass(frozen=True)
class MysqlSession:
    db: pymysql.Connection[Any]

    def run(self, statement: str, values: Sequence[object] = ()) -> int:
        with self.db.cursor() as cursor:
            return int(cursor.execute(*_asked(statement, values)))

    def ask(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self.db.cursor() as cursor:
            cursor.execute(*_asked(statement, values))
            return list(cursor.fetchall())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.db.begin()
        try:
            yield
        except BaseException:
            self.db.rollback()
            raise
        self.db.commit()


class MysqlTarget(DatabaseTarget):
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

    def __init__(self, connection: MysqlConnection, spec: PipelineSpec, root: Path) -> None:  # noqa: ARG002
        self._connection = connection
        parts = split_name(spec.target.table, spec.at("target.table"))
        if len(parts) > 2 or len(parts[-1]) > LONGEST_NAME:
            raise ConfigError(
                f"{spec.target.table} is not the name of a table that MySQL can hold",
                declared_at=spec.at("target.table"),
                hint=f"write `table` or `database.table`, each of at most {LONGEST_NAME} letters",
            )
        self._database = parts[0] if len(parts) == 2 else connection.parts["database"]
        super().__init__(spec, parts[-1], f"{quote(self._database)}.")
        self._stages = f"floodmark_stage_{sha256(self._table.encode()).hexdigest()[:12]}_"

    @property
    def resource(self) -> str:
        return f"mysql:{self._connection.where}/{self._database}.{self._name}"

    @contextmanager
    def _staged(self, db: Session, batch: DataFrame) -> Iterator[Staged]:
        """Only what attempts brought that Spark counts."""
        self._remove_leftovers(db)
        own = self._stages + token_hex(4)
        texts, typed = f"{self._prefix}{quote(own)}", f"{self._prefix}{quote(own + 't')}"
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
        yield Staged(typed, told.rows)
        self._remove_leftovers(db)

    def _remove_leftovers(self, db: Session) -> None:
        """Of runs that died or failed, too: whoever is here holds the lease."""
        found = db.ask(
            f"SELECT table_name FROM {TABLES} WHERE table_schema = {VALUE} AND left(table_name, {VALUE}) = {VALUE}",
            (self._database, len(self._stages), self._stages),
        )
        for (name,) in found:
            db.run(f"DROP TABLE IF EXISTS {self._prefix}{quote(name)}")

    # -- the table ------------------------------------------------------------------------------------------------

    def _remarks(self) -> tuple[str, str]:
        """A comment tells a table from another of its name."""
        return "", f" COMMENT = 'floodmark:{token_hex(8)}'"

    def _table_id(self, db: Session, table: str) -> str | None:
        found = db.ask(
            f"SELECT table_comment FROM {TABLES} WHERE table_schema = {VALUE} AND table_name = {VALUE}",
            (self._database, table),
        )
        if not found:
            return None
        remark = re.search(r"floodmark:([0-9a-f]+)", str(found[0][0]))
        return remark[1] if remark else "given"

    def _declared(self, db: Session) -> list[tuple[str, str]]:
        found = db.ask(
            "SELECT column_name, column_type FROM information_schema.columns "
            f"WHERE table_schema = {VALUE} AND table_name = {VALUE} ORDER BY ordinal_position",
            (self._database, self._name),
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
        if not db.ask(f"SELECT 1 FROM information_schema.schemata WHERE schema_name = {VALUE}", (self._database,)):
            trouble = f"there is no database {self._database}, or none that {user} may see"
            raise self._no_way(trouble, f"CREATE DATABASE `{self._database}`")
        if lacking := self._lacking(db):
            trouble = f"{user} may not {' nor '.join(lacking)} tables in {self._database}"
            raise self._no_way(trouble, f"GRANT {', '.join(lacking)} ON `{self._database}`.* TO {user}")

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
            (grantee, grantee, self._database, "\\"),
        )
        return sorted({"CREATE", "DROP"} - {str(right) for (right,) in given})

    def _no_way(self, trouble: str, fix: str) -> TargetError:
        return TargetError(
            f"can't write to {self._spec.target.table}: {trouble}",
            table=self._spec.target.table,
            declared_at=self._spec.at("target.table"),
            hint=f"{fix}; staging tables and heads are kept beside the table",
        )

    # -- the server -----------------------------------------------------------------------------------------------

    @contextmanager
    def _connected(self) -> Iterator[MysqlSession]:
        pymysql = driver()
        try:
            db = self._connection.connect(writes=True)
            try:
                yield MysqlSession(db)
            finally:
                if db.open:
                    db.close()
        except SourceError as error:
            at = self._spec.at("target.connection")
            table = self._spec.target.table
            raise TargetError(error.message, table=table, declared_at=at, transient=error.transient) from error
        except pymysql.Error as error:
            raise TargetError(
                f"{self._spec.target.table}: {reason(error)}",
                table=self._spec.target.table,
                declared_at=self._spec.at("target"),
                transient=may_pass(error),
            ) from error


def _asked(statement: str, values: Sequence[object]) -> tuple[str, Sequence[object] | None]:
    if not values:
        return statement, None
    return statement.replace("%", "%%").replace(VALUE, "%s"), values
