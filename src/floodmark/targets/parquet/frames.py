"""The table's files and rows as Spark has them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from floodmark.errors import TargetError
from floodmark.model.names import spark_name, twins

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

FILE = "_floodmark_file"
_LABEL = "floodmark_part"
_PATTERN = re.compile(r"([\[\]{}*?])")
"""What Spark takes for a pattern when it reads, and not when it writes."""
NO_PLACE = {"void", "interval", "daytimeinterval", "yearmonthinterval", "time"}


@dataclass(frozen=True)
class Files:
    """Of one version of the table, and how to read them as the load will leave it."""

    spark: SparkSession
    address: str
    names: tuple[str, ...]
    schema: StructType
    """As the load will leave the table's columns."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    is_whole: bool = False
    """All of them have to be written anew."""

    def read(self, names: Sequence[str]) -> DataFrame:
        return self.tagged(names).select(*map(spark_name, self.schema.names))

    def tagged(self, names: Sequence[str]) -> DataFrame:
        """Each row with the path of its file."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructField, StructType

        back = {new: old for old, new in self.renamed.items()}
        # A type that grew is read as it is now: Spark's reader knows how.
        kinds = [StructField(back.get(f.name, f.name), f.dataType) for f in self.schema.fields]
        columns = [F.col(spark_name(k.name)).alias(f.name) for k, f in zip(kinds, self.schema.fields, strict=True)]
        if not names:
            empty = self.spark.createDataFrame([], StructType(kinds))
            return empty.select(*columns, F.lit("").alias(FILE))
        paths = (_PATTERN.sub(r"\\\1", f"{self.address}/data/{name}") for name in names)
        found = self.spark.read.schema(StructType(kinds)).parquet(*paths)
        return found.select(*columns, found.metadataColumn("_metadata").getField("file_path").alias(FILE))

    def holding(self, tagged: DataFrame) -> list[str]:
        """The files that these rows are in: as many as there are files, however many rows."""
        return [row[0].rpartition("/data/")[2] for row in tagged.select(FILE).distinct().collect()]


def label(columns: Sequence[str]) -> Column:
    """Of a row's partition, in a form that every file system takes. The columns themselves stay in the files: from a
    path nobody could tell NULL from '', nor a date from a text."""
    from pyspark.sql import functions as F

    values = F.to_json(F.struct(*(F.col(spark_name(c)).alias(f"p{i}") for i, c in enumerate(columns))))
    return F.substring(F.sha2(values, 256), 1, 32)


def labels_of(rows: DataFrame, columns: Sequence[str]) -> set[str]:
    return {str(row[0]) for row in rows.select(label(columns)).distinct().collect()}


def label_in(name: str) -> str:
    """Of a file: attempt/label=…/part-…"""
    return name.split("/")[1].partition("=")[2] if name.count("/") > 1 else ""


def write(frame: DataFrame, address: str, partition_by: Sequence[str]) -> None:
    if not partition_by:
        frame.write.parquet(address)
        return
    name = _LABEL
    while name in frame.columns:
        name += "_"
    # Each partition from one task: else every task would write a small file for it.
    parts = frame.withColumn(name, label(partition_by)).repartition(spark_name(name))
    parts.write.partitionBy(name).parquet(address)


def only_columns(batch: DataFrame, schema: StructType) -> DataFrame:
    """With all of the table's columns, under its names."""
    from pyspark.sql import functions as F

    ours = {name.casefold(): name for name in batch.columns}
    return batch.select(
        *(
            F.col(spark_name(ours[f.name.casefold()])).alias(f.name)
            if f.name.casefold() in ours
            else F.lit(None).cast(f.dataType).alias(f.name)
            for f in schema.fields
        )
    )


def refuse_columns(schema: StructType, table: str) -> None:
    """Before anything is read, and by name."""
    if (pair := twins(schema.names)) is not None:
        raise TargetError(
            f'columns "{pair[0]}" and "{pair[1]}" differ only by case, which Spark can\'t tell apart',
            table=table,
            column=pair[1],
            hint="give one of them another name in the transform",
        )
    for column in schema.fields:
        if column.dataType.typeName() in NO_PLACE:
            raise TargetError(
                f'column "{column.name}" is {column.dataType.simpleString()}, which Parquet files have no place for',
                table=table,
                column=column.name,
                hint=f"cast it in the transform: CAST({spark_name(column.name)} AS string)",
            )
