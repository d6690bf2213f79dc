"""A small batch that takes the place of the rows that it changes, by key and in one commit.

MERGE goes over the table three times, and reads each column that its conditions name. Here the rows that must not be
written are found first: only rows of the table that are at least as new as the oldest of the batch can keep one out,
and those lie in the files of the last few loads; Delta leaves all others alone. What is left replaces its namesakes
with `replaceOn`: one pass over the table's keys.

Another load of Floodmark's that commits in between has taken this one's ordinal, and Delta then refuses this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from floodmark.model.names import OP, spark_name
from floodmark.model.outcome import Load
from floodmark.targets.lake_sql import S, T, same_row, wins
from floodmark.targets.small_batch import Held

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KNOWN = "spark.databricks.delta.replaceOn.dataframe.writer.enabled"
L = "floodmark_losers"
NEEDS_MERGE = ("delta.enableChangeDataFeed", "delta.enableRowTracking")
"""Properties of tables whose readers are told of an update, not of a row that went and one that came."""


@dataclass(frozen=True)
class Winners:
    batch: DataFrame
    rows: int


def is_replaceable(spark: SparkSession, held: Held, load: Load, properties: Mapping[str, str]) -> bool:
    """A batch of whole rows, as far as the batch and the table know."""
    return (
        held.is_light
        and held.lowest is not None
        and load.fallback is None
        and OP not in held.batch.columns
        and not any(properties.get(name, "").lower() == "true" for name in NEEDS_MERGE)
        and _is_known(spark)
    )


def _is_known(spark: SparkSession) -> bool:
    """To a Delta that does not know the option, the same write would replace the whole table."""
    try:
        return spark.conf.get(KNOWN) == "true"
    except Exception:
        return False


def winners(spark: SparkSession, path: str, held: Held, load: Load) -> Winners:
    """The rows of the batch that belong into the table. Beyond all that was loaded before, that is each of them."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    if load.beyond and load.later_wins:
        return Winners(held.batch.coalesce(1), held.rows or 0)
    keys = [spark_name(key) for key in load.keys]
    newer = spark.read.format("delta").load(path).where(f"{spark_name(load.cursor[0])} >= {held.lowest}")
    losers = (
        newer.alias(T)
        .join(held.sent().alias(S), F.expr(same_row(load.keys, {})))
        .where(f"NOT coalesce({wins(held.batch.schema, load)}, false)")
        .select(*(F.col(f"{S}.{key}") for key in keys))
    )
    same = F.expr(" AND ".join(f"{S}.{key} = {L}.{key}" for key in keys))
    kept = held.batch.alias(S).join(F.broadcast(losers).alias(L), same, "left_anti")
    seen = Observation()
    batch = kept.coalesce(1).observe(seen, F.count(F.lit(1)).alias("rows")).localCheckpoint()
    return Winners(batch, int(seen.get["rows"]))
