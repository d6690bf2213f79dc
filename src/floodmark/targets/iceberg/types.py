"""Which columns an Iceberg table can have, and how far their types can grow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from floodmark.errors import TargetError
from floodmark.model.names import spark_name
from floodmark.model.spec import PipelineSpec
from floodmark.targets.lake_types import refuse_names, refuse_types
from floodmark.targets.schema import Fit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

NO_PLACE = {"void", "interval", "daytimeinterval", "yearmonthinterval", "time", "variant"}
"""Spark types that Iceberg's format 2 has none for, by `typeName`."""

RESERVED = (
    *("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"),
    *("_change_type", "_change_ordinal", "_commit_snapshot_id"),
)
"""Columns that every Iceberg table has beside its own."""


def refuse_columns(schema: StructType, table: str) -> None:
    """Before anything is read or created, and by name."""
    refuse_names(schema, table, "Iceberg", RESERVED)
    refuse_types(schema, table, "Iceberg", NO_PLACE)


def as_stored(batch: DataFrame) -> DataFrame:
    """Iceberg's smallest whole number has 32 bits."""
    kept = []
    for field in batch.schema.fields:
        value, kind = batch[spark_name(field.name)], stored(field.dataType)
        kept.append(value if kind == field.dataType else value.cast(kind).alias(field.name))
    return batch.select(*kept)


def stored(kind: DataType) -> DataType:
    from pyspark.sql import types as T

    inner: Any = kind
    match kind.typeName():
        case "byte" | "short":
            return T.IntegerType()
        case "array":
            return T.ArrayType(stored(inner.elementType), inner.containsNull)
        case "map":
            return T.MapType(stored(inner.keyType), stored(inner.valueType), inner.valueContainsNull)
        case "struct":
            return T.StructType([T.StructField(f.name, stored(f.dataType), f.nullable) for f in inner.fields])
    return kind


def can_grow(have: DataType, wanted: DataType) -> bool:
    before: Any = have
    after: Any = wanted
    kinds = (have.typeName(), wanted.typeName())
    if kinds == ("decimal", "decimal"):
        return bool(before.scale == after.scale and before.precision <= after.precision)
    return have.simpleString() == wanted.simpleString() or kinds in (("integer", "long"), ("float", "double"))


def refuse_growth(table: StructType, fit: Fit, spec: PipelineSpec) -> None:
    """Types that other lakes can widen, and Iceberg can't."""
    renamed = {new: old for old, new in fit.renamed}
    for name, wanted in fit.widened:
        have = table[renamed.get(name, name)].dataType
        if not can_grow(have, wanted):
            raise unchangeable(name, have, wanted, spec)


def unchangeable(name: str, have: DataType, wanted: DataType, spec: PipelineSpec) -> TargetError:
    return TargetError(
        f'column "{name}" was {have.simpleString()} and is {wanted.simpleString()}, which Iceberg can\'t change it to',
        table=spec.target.table,
        column=name,
        declared_at=spec.at("target.schema_changes"),
        hint="choose one:\n"
        f"  columns: {{{name}: {{cast: {have.simpleString()}}}}}     or a transform that makes it fit\n"
        "  target: {schema_changes: discard}     keep the table's type; a value that does not fit fails\n"
        f"  drop the table, then floodmark run {spec.name} --full-refresh     make it anew",
    )
