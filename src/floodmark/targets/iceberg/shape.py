"""What the table looks like, and the batch as it fits into it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from floodmark.connections.iceberg_catalog import Catalog
from floodmark.model.spec import PipelineSpec
from floodmark.targets.deletes import survivors
from floodmark.targets.iceberg.snapshots import IcebergLog
from floodmark.targets.iceberg.sql import (
    OURS,
    add_partitions,
    change_table,
    create_table,
    drop_columns,
    drop_partitions,
    order_table,
)
from floodmark.targets.iceberg.types import can_grow, refuse_growth, unchangeable
from floodmark.targets.schema import Fit, fit
from floodmark.targets.widening import common_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType


@dataclass(frozen=True)
class Shape:
    batch: DataFrame
    missing: tuple[StructField, ...] = ()
    """Columns of the table that the batch lacks."""
    notices: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()
    """Columns that no row has a value in after the load."""

    def whole(self) -> DataFrame:
        """With a value for each column, and without the rows that are gone."""
        from pyspark.sql import functions as F

        batch = survivors(self.batch)
        nulls = (F.lit(None).cast(field.dataType).alias(field.name) for field in self.missing)
        return batch.select("*", *nulls) if self.missing else batch


def created(catalog: Catalog, table: tuple[str, ...], schema: StructType, spec: PipelineSpec) -> list[str]:
    """Statements; none of them minds that somebody else was quicker."""
    levels = range(1, len(table))
    spaces = [f"CREATE NAMESPACE IF NOT EXISTS {catalog.sql_name(*table[:level])}" for level in levels]
    return [*spaces, *create_table(catalog.sql_name(*table), schema, spec.target, spec.name)]


def fitted(spark: SparkSession, name: str, batch: DataFrame, spec: PipelineSpec, log: IcebergLog) -> Shape:  # noqa: ARG001
    """By the schema policy."""
    table = spark.table(name).schema
    wanted = fit(table, batch, spec)
    refuse_growth(table, wanted, spec)
    _run(spark, change_table(name, wanted))
    return Shape(wanted.batch, _missing(table, wanted), wanted.notices)


def reshaped(spark: SparkSession, name: str, batch: DataFrame, spec: PipelineSpec, log: IcebergLog) -> Shape:
    """For a load that replaces everything: the table becomes what the batch is, as far as it can without touching the
    rows that readers see until then."""
    declared = spec.target.partition_by
    partitions = log.partitions if declared or log.properties.get(OURS) == spec.name else {}
    _run(spark, drop_partitions(name, (field for what, field in partitions.items() if what not in declared)))
    table = spark.table(name).schema
    clashes = _clashes(table, batch.schema)
    if clashes and log.main is not None:
        have, new = clashes[0]
        raise unchangeable(have.name, have.dataType, new.dataType, spec)
    if clashes:
        _run(spark, drop_columns(name, (have.name for have, _ in clashes)))
        table = spark.table(name).schema
    target = spec.target.model_copy(update={"schema_changes": "evolve"})
    wanted = fit(table, batch, spec.model_copy(update={"target": target}))
    _run(spark, change_table(name, wanted))
    _run(spark, add_partitions(name, (column for column in declared if column not in log.partitions)))
    _run(spark, order_table(name, spec.target))
    missing = _missing(table, wanted)
    return Shape(wanted.batch, missing, emptied=tuple(field.name for field in missing))


def _clashes(table: StructType, batch: StructType) -> list[tuple[StructField, StructField]]:
    """Columns whose types can't be brought together."""
    new = {field.name.casefold(): field for field in batch.fields}
    pairs = [(have, new[have.name.casefold()]) for have in table.fields if have.name.casefold() in new]
    found = []
    for have, field in pairs:
        common = common_type(have.dataType, field.dataType)
        if common is None or not can_grow(have.dataType, common):
            found.append((have, field))
    return found


def _missing(table: StructType, fit: Fit) -> tuple[StructField, ...]:
    from pyspark.sql.types import StructField

    renamed, theirs = dict(fit.renamed), {name.casefold() for name in fit.batch.columns}
    fields = [StructField(renamed.get(f.name, f.name), f.dataType) for f in table.fields]
    return tuple(field for field in fields if field.name.casefold() not in theirs)


def _run(spark: SparkSession, statements: Iterable[str]) -> None:
    for statement in statements:
        spark.sql(statement)
