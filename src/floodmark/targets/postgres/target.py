"""A Postgres table. Spark's tasks copy the batch into a staging table of this attempt's own; one short transaction on
the driver takes the ordinal, checks that all rows are there, promotes them and keeps the head. Readers see all of a
batch or nothing of it, and a crash leaves a staging table, which the next load removes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from floodmark.connections.names import quote, split_name
from floodmark.connections.postgres import PostgresConnection, driver, may_pass
from floodmark.errors import ConfigError, SourceError, TargetError
from floodmark.model.outcome import Landed, Load, TargetState
from floodmark.model.spec import PipelineSpec
from floodmark.targets.postgres.heads import Heads
from floodmark.targets.postgres.promote import Promotion
from floodmark.targets.postgres.staging import ATTEMPT, Copy, stage
from floodmark.targets.postgres.types import NESTED, as_text, flat, spark_type, sql_type
from floodmark.targets.schema import Fit, fit

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
LONGEST_NAME = 63


class PostgresTarget:
    def __init__(self, connection: PostgresConnection, spec: PipelineSpec, root: Path) -> None:  # noqa: ARG002
        self._connection = connection
        self._spec = spec
        parts = split_name(spec.target.table, spec.at("target.table"))
        if len(parts) > 2 or len(parts[-1].encode()) > LONGEST_NAME:
            raise ConfigError(
                f"{spec.target.table} is not the name of a table that Postgres can hold",
                declared_at=spec.at("target.table"),
                hint=f"write `schema.table`, each of at most {LONGEST_NAME} bytes",
            )
        self._schema, self._name = parts if len(parts) == 2 else ("public", parts[0])
        self._table = f"{quote(self._schema)}.{quote(self._name)}"
        self._heads = Heads(self._schema, self._name, spec.name)
        self._stages = f"floodmark_stage_{sha256(self._table.encode()).hexdigest()[:12]}_"

    @property
    def resource(self) -> str:
        return f"postgres:{self._connection.where}/{self._schema}.{self._name}"

    def inspect(self, *, deep: bool = False) -> TargetState:
        with self._connected() as db:
            number = self._table_id(db)
            self._check_writable(db)
            if number is None:
                return TargetState(exists=False)
            landed = self._heads.landed(db, deep=deep)
            (has_rows,) = db.execute(f"SELECT EXISTS (SELECT FROM {self._table})".encode()).fetchone() or (False,)
            top = landed[0].head.ordinal if landed else 0
            return TargetState(True, str(number), top, landed, top, has_rows=bool(has_rows))

    def find(self, batch_id: str) -> Landed | None:
        with self._connected() as db:
            return self._heads.find(db, batch_id)

    def load(self, spark: SparkSession, batch: DataFrame, load: Load) -> Landed | None:  # noqa: ARG002 - the batch's own
        with self._connected() as db:
            self._heads.create(db)
            self._remove_leftovers(db)
            fitted = self._prepared(db, batch)
            name = f"{quote(self._schema)}.{quote(self._stages + token_hex(4))}"
            schema = fitted.batch.schema
            db.execute(f"CREATE UNLOGGED TABLE {name} (LIKE {self._table}, {quote(ATTEMPT)} bigint)".encode())
            try:
                columns = ", ".join(map(quote, (*schema.names, ATTEMPT)))
                copy = Copy(self._connection.keywords, f"COPY {name} ({columns}) FROM STDIN (FORMAT csv)")
                staged = stage(as_text(fitted.batch, schema.names), copy)
                number = self._table_id(db)
                with db.transaction():
                    if number is None or not self._heads.take(db, load.head, number):
                        return None
                    rows = Promotion(self._table, name, schema, load).run(db, staged)
                    self._heads.count(db, load.head.ordinal, rows)
            finally:
                if not db.broken:
                    db.execute(f"DROP TABLE IF EXISTS {name}".encode())
            landed = self._heads.find(db, load.intent.batch)
        return None if landed is None else replace(landed, notices=fitted.notices)

    # -- the table ------------------------------------------------------------------------------------------------

    def _prepared(self, db: psycopg.Connection[Any], batch: DataFrame) -> Fit:
        """The table, there and wide enough for the batch."""
        nested = {f.name for f in batch.schema.fields if f.dataType.typeName() in NESTED}
        number = self._table_id(db)
        if number is None:
            self._create(db, batch.schema)
            return Fit(flat(batch))
        rows = flat(batch)
        wanted = fit(self._columns(db, number, rows.schema), rows, self._spec)
        changes = [f"RENAME COLUMN {quote(old)} TO {quote(new)}" for old, new in wanted.renamed]
        changes += [
            f"ALTER COLUMN {quote(name)} TYPE {sql_type(kind, name, self._name)}" for name, kind in wanted.widened
        ]
        for field in wanted.added:
            kind = "jsonb" if field.name in nested else sql_type(field.dataType, field.name, self._name)
            changes.append(f"ADD COLUMN {quote(field.name)} {kind}")
        with db.transaction():
            for change in changes:
                db.execute(f"ALTER TABLE {self._table} {change}".encode())
        return wanted

    def _create(self, db: psycopg.Connection[Any], schema: StructType) -> None:
        columns = [f"{quote(f.name)} {sql_type(f.dataType, f.name, self._name)}" for f in schema.fields]
        if self._spec.target.mode == "upsert":
            columns.append(f"PRIMARY KEY ({', '.join(map(quote, self._spec.target.keys))})")
        db.execute(f"CREATE TABLE {self._table} ({', '.join(columns)})".encode())

    def _columns(self, db: psycopg.Connection[Any], number: int, batch: StructType) -> StructType:
        """As Spark would call them; where only Postgres knows the type, as the batch brings it."""
        from pyspark.sql.types import StringType, StructField, StructType

        theirs = {field.name.casefold(): field.dataType for field in batch.fields}
        fields = []
        for name, kind in db.execute(_COLUMNS.encode(), (number,)).fetchall():
            fields.append(StructField(name, spark_type(kind) or theirs.get(name.casefold()) or StringType()))
        return StructType(fields)

    def _table_id(self, db: psycopg.Connection[Any]) -> int | None:
        (number,) = db.execute(b"SELECT to_regclass(%s)::oid::bigint", (self._table,)).fetchone() or (None,)
        return number

    def _remove_leftovers(self, db: psycopg.Connection[Any]) -> None:
        """Of runs that died: whoever is here holds the lease."""
        found = db.execute(
            b"SELECT tablename FROM pg_tables WHERE schemaname = %s AND starts_with(tablename, %s)",
            (self._schema, self._stages),
        ).fetchall()
        for (name,) in found:
            db.execute(f"DROP TABLE IF EXISTS {quote(self._schema)}.{quote(name)}".encode())

    def _check_writable(self, db: psycopg.Connection[Any]) -> None:
        """Known before anything is read."""
        row = db.execute(
            b"SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = %s", (self._schema,)
        ).fetchone()
        if row is not None and row[0]:
            return
        user = self._connection.parts.get("user", "the user")
        trouble = f"there is no schema {self._schema}" if row is None else f"{user} may not create tables there"
        schema = quote(self._schema)
        fix = f"CREATE SCHEMA {schema}" if row is None else f"GRANT CREATE ON SCHEMA {schema} TO {quote(user)}"
        raise TargetError(
            f"can't write to {self._spec.target.table} at {self._connection.where}: {trouble}",
            table=self._spec.target.table,
            declared_at=self._spec.at("target.table"),
            hint=f"{fix}; staging tables and heads are kept beside the table",
        )

    # -- the server -----------------------------------------------------------------------------------------------

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        psycopg = driver()
        try:
            with self._connection.connect(writes=True) as db:
                yield db
        except SourceError as error:
            at = self._spec.at("target.connection")
            raise TargetError(error.message, declared_at=at, transient=error.transient) from error
        except psycopg.Error as error:
            said = str(error).strip().splitlines()
            raise TargetError(
                f"{self._spec.target.table}: {said[0] if said else type(error).__name__}",
                table=self._spec.target.table,
                declared_at=self._spec.at("target"),
                transient=may_pass(error),
            ) from error
