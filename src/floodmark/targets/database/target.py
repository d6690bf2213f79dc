"""A table of a database. The batch is staged in a table of its own; one short transaction then takes the ordinal,
checks that all rows are there, promotes them and keeps the head. Readers see all of a batch or nothing of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from secrets import token_hex
from typing import TYPE_CHECKING, ClassVar

from floodmark.connections.names import quote
from floodmark.errors import TargetError
from floodmark.model.names import spark_name
from floodmark.model.outcome import Landed, Load, TargetState
from floodmark.model.spec import PipelineSpec
from floodmark.model.target import Mode
from floodmark.targets.database.heads import TABLE, Heads
from floodmark.targets.database.history import Versions
from floodmark.targets.database.promote import Promotion
from floodmark.targets.database.session import Dialect, Session, Staged
from floodmark.targets.database.types import NESTED, Types
from floodmark.targets.deletes import check_deletes, has_deletes, table_schema
from floodmark.targets.history import as_versions
from floodmark.targets.modes import refuse_layout, refuse_mode
from floodmark.targets.schema import Fit, fit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

LACKS: dict[Mode, str] = {
    "replace_partitions": "it has no partitions that Spark could name; use replace_range, or upsert",
}


class DatabaseTarget(ABC):
    dialect: ClassVar[Dialect]
    types: ClassVar[Types]
    unordered: ClassVar[tuple[str, ...]] = ("string", "varchar", "char")
    """Types of Spark's whose values this database orders otherwise."""

    def __init__(self, spec: PipelineSpec, table: str, prefix: str = "") -> None:
        """`prefix` names the schema, quoted, with a dot behind it."""
        refuse_mode(spec, "a database", LACKS)
        refuse_layout(spec, "a database", "partition_by", "cluster_by")
        self._spec = spec
        self._name = table
        self._prefix = prefix
        self._table = f"{prefix}{quote(table)}"
        self._heads = Heads(self.dialect, f"{prefix}{quote(TABLE)}", table, spec.name)

    # -- what each database does in its own way -------------------------------------------------------------------

    @abstractmethod
    def _connected(self) -> AbstractContextManager[Session]:
        """Whatever goes wrong in it is a TargetError."""

    @abstractmethod
    def _table_id(self, db: Session, table: str) -> str | None:
        """Another one for a table that was dropped and made again; None where there is none of this name."""

    @abstractmethod
    def _check_writable(self, db: Session) -> None: ...

    @abstractmethod
    def _declared(self, db: Session) -> list[tuple[str, str]]:
        """Names and types of the table's columns."""

    @abstractmethod
    def _spark_type(self, declared: str) -> DataType | None:
        """What a column of this type holds. None for a type that only the database has: it judges the value itself."""

    @abstractmethod
    def _staged(self, db: Session, batch: DataFrame) -> AbstractContextManager[Staged]: ...

    # -- the port -------------------------------------------------------------------------------------------------

    def inspect(self, *, deep: bool = False) -> TargetState:
        with self._connected() as db:
            self._check_writable(db)
            number = self._table_id(db, self._name)
            kept = self._heads.landed(db, deep=deep) if self._table_id(db, TABLE) else ()
            top = kept[0].head.ordinal if kept else 0
            if number is None:
                return TargetState(exists=False, top_ordinal=top)
            # Heads outlive the table that they were for; what another one of its name held is not in this one.
            landed = tuple(one for one in kept if one.table_id == number)
            ((has_rows,),) = db.ask(f"SELECT EXISTS (SELECT 1 FROM {self._table})")
            columns = tuple(name for name, _ in self._declared(db))
            return TargetState(True, number, top, landed, top, has_rows=bool(has_rows), columns=columns)

    def find(self, batch_id: str) -> Landed | None:
        with self._connected() as db:
            found = self._heads.find(db, batch_id) if self._table_id(db, TABLE) else None
            return found if found is not None and found.table_id == self._table_id(db, self._name) else None

    def load(self, spark: SparkSession, batch: DataFrame, load: Load) -> Landed | None:  # noqa: ARG002 - the batch has it
        with self._connected() as db:
            self._heads.create(db)
            check_deletes(batch, self._spec)
            if load.mode == "history":
                batch = as_versions(batch, load, self._spec)
            fitted = self._prepared(db, batch, load)
            with self._staged(db, fitted.batch) as staged, db.transaction():
                number = self._table_id(db, self._name)
                if number is None or not self._heads.take(db, load.head, number):
                    return None
                rows = self._promotion(staged, fitted.batch, load).run(db)
                self._heads.count(db, load.head.ordinal, rows)
        return Landed(load.head, load.head.ordinal, number, rows, fitted.notices)

    def _promotion(self, staged: Staged, batch: DataFrame, load: Load) -> Promotion:
        parts = (self.dialect, self._table, staged, table_schema(batch), load, self.unordered, has_deletes(batch))
        if load.mode == "history":
            return Versions(*parts, self._spec.target.history)
        return Promotion(*parts)

    # -- the table ------------------------------------------------------------------------------------------------

    def _prepared(self, db: Session, batch: DataFrame, load: Load) -> Fit:
        """The table, there and wide enough for the batch."""
        nested = {f.name for f in batch.schema.fields if f.dataType.typeName() in NESTED}
        if self._table_id(db, self._name) is None:
            self._create(db, table_schema(batch))
            if load.mode == "replace_range" and load.cursor and self.dialect.has_indexes:
                # What a load replaces is found by it.
                columns = ", ".join(map(quote, load.cursor))
                db.run(f"CREATE INDEX {quote(f'floodmark_range_{token_hex(4)}')} ON {self._table} ({columns})")
            return Fit(_flat(batch))
        rows = _flat(batch)
        wanted = self._fitted(self._columns(db, rows.schema), rows, full=load.intent.full)
        changes = [f"RENAME COLUMN {quote(old)} TO {quote(new)}" for old, new in wanted.renamed]
        changes += [self._widening(name, self._sql_type(kind, name)) for name, kind in wanted.widened]
        for field in wanted.added:
            kind = self.types.json if field.name in nested else self._sql_type(field.dataType, field.name)
            changes.append(f"ADD COLUMN {quote(field.name)} {kind}")
        with db.transaction():
            for change in changes:
                db.run(f"ALTER TABLE {self._table} {change}")
        return wanted

    def _fitted(self, table: StructType, rows: DataFrame, *, full: bool) -> Fit:
        """A load that replaces every row may change the columns, whatever the policy; but readers, and whoever has
        rights on it, keep their table."""
        if not full:
            return fit(table, rows, self._spec)
        target = self._spec.target.model_copy(update={"schema_changes": "evolve"})
        try:
            return fit(table, rows, self._spec.model_copy(update={"target": target}))
        except TargetError as error:
            hint = f"drop the table {self._name} and run `--full-refresh` again: it is made anew"
            raise TargetError(error.message, table=error.table, declared_at=error.declared_at, hint=hint) from error

    def _sql_type(self, kind: DataType, column: str) -> str:
        return self.types.of(kind, column, self._name)

    def _widening(self, column: str, kind: str) -> str:
        return f"ALTER COLUMN {quote(column)} TYPE {kind}"

    def _create(self, db: Session, schema: StructType) -> None:
        columns = [f"{quote(f.name)} {self._sql_type(f.dataType, f.name)}" for f in schema.fields]
        if self._key:
            columns.append(f"PRIMARY KEY ({', '.join(map(quote, self._key))})")
        before, behind = self._remarks()
        db.run(f"CREATE TABLE {self._table} ({before}{', '.join(columns)}){self.dialect.table_options}{behind}")

    @property
    def _key(self) -> tuple[str, ...]:
        target = self._spec.target
        if target.mode == "history":
            return (*target.keys, target.history.valid_from)
        return target.keys if target.mode == "upsert" else ()

    def _remarks(self) -> tuple[str, str]:
        """At the beginning of a new table's definition, and behind it."""
        return "", ""

    def _columns(self, db: Session, batch: StructType) -> StructType:
        """As Spark would call them; where only the database knows the type, as the batch brings it."""
        from pyspark.sql.types import StringType, StructField, StructType

        theirs = {field.name.casefold(): field.dataType for field in batch.fields}
        return StructType(
            [
                StructField(name, self._spark_type(declared) or theirs.get(name.casefold()) or StringType())
                for name, declared in self._declared(db)
            ]
        )


def _flat(batch: DataFrame) -> DataFrame:
    """Nested values as JSON."""
    from pyspark.sql import functions as F

    if not any(field.dataType.typeName() in NESTED for field in batch.schema.fields):
        return batch
    return batch.select(
        *(
            F.to_json(spark_name(f.name)).alias(f.name)
            if f.dataType.typeName() in NESTED
            else F.col(spark_name(f.name))
            for f in batch.schema.fields
        )
    )
