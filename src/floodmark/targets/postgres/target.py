"""A Postgres table. Spark's tasks copy the batch into an unlogged staging table of this attempt's own, in parallel. A
crash leaves one behind, which the next load removes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from floodmark.connections.names import quote, split_name
from floodmark.connections.postgres import PostgresConnection, driver, may_pass
from floodmark.errors import ConfigError, SourceError, TargetError
from floodmark.model.names import DELETED
from floodmark.model.spec import PipelineSpec
from floodmark.model.target import Mode
from floodmark.targets.database.heads import TABLE
from floodmark.targets.database.session import VALUE, Dialect, Session, Staged
from floodmark.targets.database.staging import stage
from floodmark.targets.database.target import DatabaseTarget
from floodmark.targets.deletes import has_deletes
from floodmark.targets.postgres.staging import ATTEMPT, Copy
from floodmark.targets.postgres.types import TYPES, as_text, spark_type

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

_COLUMNS = f"""
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = to_regclass({VALUE}) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_LACKING = f"""
SELECT relname, p FROM pg_class, unnest({VALUE}::text[]) AS p
WHERE pg_class.oid = to_regclass({VALUE}) AND NOT has_table_privilege(pg_class.oid, p)
"""
LONGEST_NAME = 63
RIGHTS: dict[Mode, tuple[str, ...]] = {
    "append": ("SELECT", "INSERT"),
    "upsert": ("SELECT", "INSERT", "UPDATE"),
    "history": ("SELECT", "INSERT", "UPDATE", "DELETE"),
}
"""What an ordinary load needs on the table; to replace rows is to delete them."""


@dataclass(frozen=True)
class PostgresSession:
    db: psycopg.Connection[Any]

    def run(self, statement: str, values: Sequence[object] = ()) -> int:
        return self._executed(statement, values).rowcount

    def ask(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self._executed(statement, values).fetchall()

    def _executed(self, statement: str, values: Sequence[object]) -> psycopg.Cursor[Any]:
        if values:
            statement = statement.replace("%", "%%").replace(VALUE, "%s")
        return self.db.execute(statement.encode(), values or None)

    def transaction(self) -> AbstractContextManager[object]:
        return self.db.transaction()


class PostgresTarget(DatabaseTarget):
    dialect = Dialect(distinct="{} IS DISTINCT FROM {}")
    types = TYPES

    def __init__(self, connection: PostgresConnection, spec: PipelineSpec, root: Path) -> None:  # noqa: ARG002
        self._connection = connection
        parts = split_name(spec.target.table, spec.at("target.table"))
        if len(parts) > 2 or len(parts[-1].encode()) > LONGEST_NAME:
            raise ConfigError(
                f"{spec.target.table} is not the name of a table that Postgres can hold",
                declared_at=spec.at("target.table"),
                hint=f"write `schema.table`, each of at most {LONGEST_NAME} bytes",
            )
        self._schema = parts[0] if len(parts) == 2 else "public"
        super().__init__(spec, parts[-1], f"{quote(self._schema)}.")
        self._stages = f"floodmark_stage_{sha256(self._table.encode()).hexdigest()[:12]}_"

    @property
    def resource(self) -> str:
        return f"postgres:{self._connection.where}/{self._schema}.{self._name}"

    @contextmanager
    def _staged(self, db: Session, batch: DataFrame) -> Iterator[Staged]:
        """Only what attempts brought that Spark counts."""
        self._remove_leftovers(db)
        name = f"{self._prefix}{quote(self._stages + token_hex(4))}"
        names = batch.schema.names
        goes = f", {quote(DELETED)} boolean" if has_deletes(batch) else ""
        db.run(f"CREATE UNLOGGED TABLE {name} (LIKE {self._table}, {quote(ATTEMPT)} bigint{goes})")
        columns = ", ".join(map(quote, (*names, ATTEMPT)))
        copy = Copy(self._connection.keywords, f"COPY {name} ({columns}) FROM STDIN (FORMAT csv)")
        told = stage(as_text(batch, names), copy)
        db.run(f"DELETE FROM {name} WHERE {quote(ATTEMPT)} <> ALL ({VALUE})", (list(told.attempts),))
        yield Staged(name, told.rows)
        db.run(f"DROP TABLE IF EXISTS {name}")

    def _remove_leftovers(self, db: Session) -> None:
        """Of runs that died or failed: whoever is here holds the lease."""
        found = db.ask(
            f"SELECT tablename FROM pg_tables WHERE schemaname = {VALUE} AND starts_with(tablename, {VALUE})",
            (self._schema, self._stages),
        )
        for (name,) in found:
            db.run(f"DROP TABLE IF EXISTS {self._prefix}{quote(name)}")

    # -- the table ------------------------------------------------------------------------------------------------

    def _table_id(self, db: Session, table: str) -> str | None:
        ((number,),) = db.ask(f"SELECT to_regclass({VALUE})::oid::text", (f"{self._prefix}{quote(table)}",))
        return None if number is None else str(number)

    def _declared(self, db: Session) -> list[tuple[str, str]]:
        return [(str(name), str(kind)) for name, kind in db.ask(_COLUMNS, (self._table,))]

    def _spark_type(self, declared: str) -> DataType | None:
        return spark_type(declared)

    def _check_writable(self, db: Session) -> None:
        """Known before anything is read."""
        found = db.ask(
            f"SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = {VALUE}", (self._schema,)
        )
        user, schema = self._connection.parts.get("user", "the user"), quote(self._schema)
        if not found:
            raise self._no_way(f"there is no schema {self._schema}", f"CREATE SCHEMA {schema}")
        if not found[0][0]:
            fix = f"GRANT CREATE ON SCHEMA {schema} TO {quote(user)}"
            raise self._no_way(f"{user} may not create tables there", fix)
        own = RIGHTS.get(self._spec.target.mode, ("SELECT", "INSERT", "DELETE"))
        for table, rights in {self._name: own, TABLE: RIGHTS["history"]}.items():
            if lacking := db.ask(_LACKING, (list(rights), f"{self._prefix}{quote(table)}")):
                words = ", ".join(right for _, right in lacking)
                fix = f"GRANT {words} ON {self._prefix}{quote(table)} TO {quote(user)}"
                raise self._no_way(f"{user} may not {words} on {table}", fix)

    def _no_way(self, trouble: str, fix: str) -> TargetError:
        return TargetError(
            f"can't write to {self._spec.target.table} at {self._connection.where}: {trouble}",
            table=self._spec.target.table,
            declared_at=self._spec.at("target.table"),
            hint=f"{fix}; staging tables and heads are kept beside the table",
        )

    # -- the server -----------------------------------------------------------------------------------------------

    @contextmanager
    def _connected(self) -> Iterator[PostgresSession]:
        psycopg = driver()
        try:
            with self._connection.connect(writes=True) as db:
                yield PostgresSession(db)
        except SourceError as error:
            at = self._spec.at("target.connection")
            table = self._spec.target.table
            raise TargetError(error.message, table=table, declared_at=at, transient=error.transient) from error
        except psycopg.Error as error:
            said = str(error).strip().splitlines()
            raise TargetError(
                f"{self._spec.target.table}: {said[0] if said else type(error).__name__}",
                table=self._spec.target.table,
                declared_at=self._spec.at("target"),
                transient=may_pass(error),
            ) from error
