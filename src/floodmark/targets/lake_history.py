"""A batch of events into versions of rows, for tables that Spark itself merges into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from floodmark.model.names import OP, PROVENANCE, spark_name
from floodmark.model.outcome import Load
from floodmark.model.target import HistorySpec
from floodmark.targets.deletes import has_deletes, table_schema
from floodmark.targets.history import Timeline
from floodmark.targets.lake_sql import Range, S, T, same_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_EVENTS, _KEPT = "floodmark_batch_events", "floodmark_table_versions"
VANISHED = "_floodmark_vanished"
UNCOMPARED = ("map", "variant")


@dataclass(frozen=True)
class LakeHistory:
    spark: SparkSession
    load: Load
    names: HistorySpec

    @contextmanager
    def alone(self, batch: DataFrame) -> Iterator[DataFrame]:
        """The versions of a batch whose keys the table does not hold. Spark may look the batch up as late as when it
        writes."""
        batch.createOrReplaceTempView(_EVENTS)
        try:
            yield self.spark.sql(self._timeline(batch).versions(_EVENTS))
        finally:
            self.spark.catalog.dropTempView(_EVENTS)

    def changes(self, batch: DataFrame, table: DataFrame) -> DataFrame:
        """What the table's versions of these keys become, and which of them are to go. The batch is held by now: it is
        gone over twice. All of this is as big as the change, but after a read of the whole table."""
        from pyspark.sql import functions as F

        kept = table.select(*(F.col(spark_name(name)) for name in table_schema(batch).names))
        if self.load.cursor:
            kept = kept.join(
                batch.select(*self._columns(*self.load.keys)).distinct(), list(self.load.keys), "left_semi"
            )
            kept = kept.select(*self._columns(*table_schema(batch).names)).localCheckpoint()
        batch.createOrReplaceTempView(_EVENTS)
        kept.createOrReplaceTempView(_KEPT)
        try:
            versions = self.spark.sql(self._timeline(batch).versions(_EVENTS, _KEPT)).localCheckpoint()
        finally:
            self.spark.catalog.dropTempView(_EVENTS)
            self.spark.catalog.dropTempView(_KEPT)
        vanished = kept.join(versions, [*self.load.keys, self.names.valid_from], "left_anti")
        return versions.withColumn(VANISHED, F.lit(False)).unionByName(vanished.withColumn(VANISHED, F.lit(True)))

    def merge(self, table: str, changes: str, schema: StructType, ranges: Mapping[str, Range]) -> str:
        """`schema` is the table's; `table` and `changes` are names in Spark."""
        vf = spark_name(self.names.valid_from)
        names = [field.name for field in schema.fields]
        values = {n: "'update'" if n == OP else f"{S}.{spark_name(n)}" for n in names}
        assignments = ", ".join(f"{T}.{spark_name(n)} = {value}" for n, value in values.items())
        columns, rows = ", ".join(map(spark_name, names)), ", ".join(f"{S}.{spark_name(n)}" for n in names)
        apart = [n for n in names if n not in (*self.load.keys, self.names.valid_from, *PROVENANCE)]
        same = " AND ".join(f"{S}.{spark_name(n)} <=> {T}.{spark_name(n)}" for n in apart)
        differs = f"NOT ({same})" if _is_comparable(schema) else "true"
        return (
            f"MERGE INTO {table} AS {T} USING {spark_name(changes)} AS {S} "
            f"ON {same_row(self.load.keys, ranges)} AND {T}.{vf} = {S}.{vf} "
            f"WHEN MATCHED AND {S}.{VANISHED} THEN DELETE WHEN MATCHED AND {differs} THEN UPDATE SET {assignments} "
            f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({rows})"
        )

    def _timeline(self, batch: DataFrame) -> Timeline:
        schema = table_schema(batch)
        return Timeline(
            spark_name,
            "NOT ({} <=> {})",
            self.names,
            [name for name in schema.names if name not in self.names.names],
            self.load,
            f"timestamp_micros({int(self.load.head.at.timestamp() * 1_000_000)})",
            is_comparable=_is_comparable(schema),
            has_deletes=has_deletes(batch),
        )

    @staticmethod
    def _columns(*names: str) -> list[str]:
        return [spark_name(name) for name in names]


def _is_comparable(schema: StructType) -> bool:
    return not any(field.dataType.typeName() in UNCOMPARED for field in schema.fields)
