"""A small batch on its way into a table that may be big: read once and held, with what a load wants to know of it.

A merge goes over its source three times and over the table as often. Held here, the batch comes from its database once;
the range of its keys and its lowest cursor value let Delta leave whole files of the table alone; and sent to every task
(a broadcast), it leaves the table's rows where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from floodmark.model.names import spark_name
from floodmark.spark.tuning import BROADCAST_BYTES, SMALL_BATCH
from floodmark.targets.lake_sql import Range
from floodmark.targets.settings import set_for_now

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

INTEGERS = ("byte", "short", "integer", "long")
"""Keys whose range is asked for: the order of all else may not be the one that Delta's statistics are kept in."""

FIXED = (*INTEGERS, "float", "double", "decimal", "boolean", "date", "timestamp", "timestamp_ntz")
MEASURED = ("string", "varchar", "char", "binary", "array", "struct", "map")
WORD = 16
"""Bytes that a value of a fixed size takes at most."""

ORDERED = (*INTEGERS, "decimal", "date", "timestamp", "timestamp_ntz")
"""Types whose order is the same everywhere."""


@dataclass(frozen=True)
class Held:
    batch: DataFrame
    ranges: Mapping[str, Range]
    """Lowest and highest value by key column, where they say anything."""
    rows: int | None = None
    is_light: bool = False
    """It may be sent to every task."""
    lowest: str | None = None
    """Of the cursor's first column, as SQL; None where that is not known of each row."""

    def sent(self) -> DataFrame:
        from pyspark.sql import functions as F

        return F.broadcast(self.batch) if self.is_light else self.batch


def is_small(rows: int | None) -> bool:
    return rows is not None and rows <= SMALL_BATCH


def hold(batch: DataFrame, keys: Sequence[str], cursor: str | None = None) -> Held:
    """Reads the batch, and watches it go by: asking afterwards would be one more job. Spark holds it until the frame is
    forgotten; where a worker dies with its part of it, the load fails and is tried again. Over Spark Connect nothing is
    told of what went by, and the load does without."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    kinds = {field.name: field.dataType for field in batch.schema.fields}
    asked = {f"k{i}": k for i, k in enumerate(keys) if kinds[k].typeName() in INTEGERS}
    facts = [F.count(F.lit(1)).alias("rows"), _bytes(batch.schema).alias("bytes")]
    for name, key in asked.items():
        facts += [F.min(spark_name(key)).alias(f"{name}_low"), F.max(spark_name(key)).alias(f"{name}_high")]
    if cursor is not None and kinds[cursor].typeName() in ORDERED:
        facts += [F.count(spark_name(cursor)).alias("ordered"), _lowest(cursor, kinds[cursor]).alias("lowest")]
    seen = Observation()
    rows = batch.observe(seen, *facts).localCheckpoint()
    found = seen.get
    ranges = {
        key: (int(found[f"{name}_low"]), int(found[f"{name}_high"]))
        for name, key in asked.items()
        if found.get(f"{name}_low") is not None
    }
    weight, count = found.get("bytes"), found.get("rows")
    is_light = weight is not None and weight <= BROADCAST_BYTES
    known = cursor is not None and found.get("lowest") is not None and found["ordered"] == count
    lowest = _literal(str(found["lowest"]), kinds[cursor]) if cursor is not None and known else None
    return Held(rows, ranges, count, is_light, lowest)


def _lowest(cursor: str, kind: DataType) -> Column:
    """In a form that no time zone changes."""
    from pyspark.sql import functions as F

    least = F.min(spark_name(cursor))
    return (F.unix_micros(least) if kind.typeName() == "timestamp" else least).cast("string")


def _literal(value: str, kind: DataType) -> str:
    if kind.typeName() == "timestamp":
        return f"timestamp_micros({value})"
    return f"CAST('{value}' AS {kind.simpleString()})"


def _bytes(schema: StructType) -> Column:
    """About what the rows take in memory; NULL where nobody can tell, or where there are none."""
    from pyspark.sql import functions as F

    if any(f.dataType.typeName() not in (*FIXED, *MEASURED) for f in schema.fields):
        return F.max(F.lit(None).cast("long"))
    sizes = [_size(f.name, f.dataType) for f in schema.fields]
    return F.sum(sum(sizes[1:], sizes[0]))


def _size(name: str, kind: DataType) -> Column:
    from pyspark.sql import functions as F

    value = F.col(spark_name(name))
    if kind.typeName() in FIXED:
        return F.lit(WORD).cast("long")
    text = value if kind.typeName() == "binary" else value.cast("string")
    return F.coalesce(F.octet_length(text), F.lit(0)).cast("long") + F.lit(WORD)


@contextmanager
def set_for_held(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """For as long as one load takes; what somebody has chosen himself stays."""
    before = {name: spark.conf.get(name, None) for name in settings}
    with set_for_now(spark, {name: value for name, value in settings.items() if before[name] in (None, "auto")}):
        yield
