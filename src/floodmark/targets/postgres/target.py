"""A Postgres table. Spark's tasks copy the batch into an unlogged staging table, in parallel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from floodmark.connections.names import quote
from floodmark.connections.postgres import PostgresConnection, driver, may_pass
from floodmark.model.names import DELETED
from floodmark.model.spec import PipelineSpec
from floodmark.model.target import Mode
from floodmark.targets.database.heads import TABLE
from floodmark.targets.database.names import Names
from floodmark.targets.database.server import ServerTarget
from floodmark.targets.database.session import VALUE, Dialect, Session, Staged, with_percents
from floodmark.targets.database.staging import stage
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
        asked, given = with_percents(statement, values)
        return self.db.execute(asked.encode(), given)

    def transaction(self) -> AbstractContextManager[object]:
        return self.db.transaction()


class PostgresTarget(ServerTarget):
    dialect = Dialect(distinct="{} IS DISTINCT FROM {}")
    types = TYPES
    names = Names("Postgres", "`schema.table`, each of at most 63 bytes", lambda name: len(name.encode()) <= 63)

    def __init__(self, connection: PostgresConnection, spec: PipelineSpec, root: Path) -> None:  # noqa: ARG002
        self._connection = connection
        super().__init__(spec, "public")

    @property
    def resource(self) -> str:
        return f"postgres:{self._connection.where}/{self._schema}.{self._name}"

    def _fill(self, db: Session, batch: DataFrame, name: str) -> Staged:
        staging = self._beside(name)
        names = batch.schema.names
        goes = f", {quote(DELETED)} boolean" if has_deletes(batch) else ""
        db.run(f"CREATE UNLOGGED TABLE {staging} (LIKE {self._table}, {quote(ATTEMPT)} bigint{goes})")
        columns = ", ".join(map(quote, (*names, ATTEMPT)))
        copy = Copy(self._connection.keywords, f"COPY {staging} ({columns}) FROM STDIN (FORMAT csv)")
        told = stage(as_text(batch, names), copy)
        db.run(f"DELETE FROM {staging} WHERE {quote(ATTEMPT)} <> ALL ({VALUE})", (list(told.attempts),))
        return Staged(staging, told.rows)

    # -- the table ------------------------------------------------------------------------------------------------

    def _table_id(self, db: Session, table: str) -> str | None:
        ((number,),) = db.ask(f"SELECT to_regclass({VALUE})::oid::text", (self._beside(table),))
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
            raise self._not_writable(
                f" at {self._connection.where}: there is no schema {self._schema}", f"CREATE SCHEMA {schema}"
            )
        if not found[0][0]:
            fix = f"GRANT CREATE ON SCHEMA {schema} TO {quote(user)}"
            raise self._not_writable(f" at {self._connection.where}: {user} may not create tables there", fix)
        own = RIGHTS.get(self._spec.target.mode, ("SELECT", "INSERT", "DELETE"))
        for table, rights in {self._name: own, TABLE: RIGHTS["history"]}.items():
            if lacking := db.ask(_LACKING, (list(rights), f"{self._prefix}{quote(table)}")):
                words = ", ".join(right for _, right in lacking)
                fix = f"GRANT {words} ON {self._prefix}{quote(table)} TO {quote(user)}"
                raise self._not_writable(f" at {self._connection.where}: {user} may not {words} on {table}", fix)

    # -- the server -----------------------------------------------------------------------------------------------

    @contextmanager
    def _opened(self) -> Iterator[PostgresSession]:
        with self._connection.connect(writes=True) as db:
            yield PostgresSession(db)

    def _driver_error(self) -> type[Exception]:
        return cast("type[Exception]", driver().Error)

    def _told(self, error: Exception) -> tuple[str, bool]:
        said = str(error).strip().splitlines()
        return said[0] if said else type(error).__name__, may_pass(error)
