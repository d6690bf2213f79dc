"""A row as Spark can hash it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from floodmark.model.names import spark_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def row_hash(rows: DataFrame) -> Column:
    """Of all columns. Spark hashes no maps, whose entries may come in another order: as text they can be."""
    from pyspark.sql import functions as F

    columns = []
    for field in rows.schema.fields:
        column, kind = F.col(spark_name(field.name)), field.dataType.simpleString()
        columns.append(F.to_json(F.struct(column)) if "map<" in kind or "variant" in kind else column)
    return F.xxhash64(*columns)
