"""One row per key in a batch: the newest by cursor, and always the same one when cursors are equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from floodmark.errors import ConfigError
from floodmark.hashing import row_hash
from floodmark.model.names import spark_name
from floodmark.model.spec import PipelineSpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ROW = "_floodmark_row"
SHOWN = 80
"""Characters of a cursor's values in a message."""
_NO_KEY = ", and would never be found again: leave it out, or choose other keys"


def require_columns(batch: DataFrame, spec: PipelineSpec, cursor: Sequence[str]) -> None:
    """A transform may have dropped what the load needs: say so before anything is read."""
    wanted = [(name, "target.keys", "a key") for name in spec.target.keys]
    wanted += [(name, "change", "the cursor, which decides which row wins") for name in cursor]
    wanted += [(n, "target.partition_by", "a partition column") for n in spec.target.partition_by]
    wanted += [(n, "target.cluster_by", "a clustering column") for n in spec.target.cluster_by]
    for name, path, role in wanted:
        if name not in batch.columns:
            raise ConfigError(
                f'column "{name}", {role}, is not among the columns to load',
                column=name,
                declared_at=spec.at(path),
                hint=f"columns to load: {', '.join(batch.columns)}",
            )


def refuse_null_keys(batch: DataFrame, keys: Sequence[str], cursor: Sequence[str], table: str) -> DataFrame:
    """A NULL never equals another, so such a row would be inserted again on each read. Fails inside the load, before
    its commit, without a pass over the data of its own. The cursor's value helps to find the row."""
    from pyspark.sql import functions as F

    values = [(name, F.coalesce(F.col(spark_name(name)).cast("string"), F.lit("NULL"))) for name in cursor]
    where = [part for name, value in values for part in (F.lit(f", {name} = "), value)]
    row = [F.lit(" (the row with "), F.substring(F.concat(*where), 3, SHOWN), F.lit(")")] if where else []

    def checked(key: str) -> Column:
        said = F.lit(f"floodmark: a row of {table} has NULL in key column {key}")
        refusal = F.raise_error(F.concat(said, *row, F.lit(_NO_KEY)))
        return F.when(F.col(spark_name(key)).isNull(), refusal).otherwise(F.col(spark_name(key))).alias(key)

    return batch.select(*(checked(c) if c in keys else F.col(spark_name(c)) for c in batch.columns))


def newest_by_key(
    batch: DataFrame, keys: Sequence[str], cursor: Sequence[str], fallback: str | None = None
) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    tie_break = row_hash(batch)
    values = [F.col(spark_name(c)) for c in cursor]
    if fallback is not None:
        values[0] = F.coalesce(values[0], F.col(spark_name(fallback)))
    order = [value.desc_nulls_last() for value in values]
    ranked = Window.partitionBy(*(F.col(spark_name(k)) for k in keys)).orderBy(*order, tie_break)
    rank = _ROW
    while rank in batch.columns:
        rank += "_"
    return batch.withColumn(rank, F.row_number().over(ranked)).where(F.col(rank) == 1).drop(rank)
