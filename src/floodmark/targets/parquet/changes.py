"""What a load makes of the table: which files go, and the rows that come in their place. A file is never changed: one
that holds a row to be changed is written anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from floodmark.model.names import DELETED, OP, spark_name
from floodmark.model.outcome import Load
from floodmark.targets.deletes import survivors
from floodmark.targets.lake_sql import S, T, range_predicate, same_row, wins
from floodmark.targets.parquet.frames import FILE, Files, only_columns
from floodmark.targets.small_batch import hold, is_small

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Change:
    frame: DataFrame
    """All rows to write."""
    removed: tuple[str, ...] = ()
    read: int | None = None
    """Rows of the batch, where they were counted."""
    seen: Mapping[str, Observation] = field(default_factory=dict)
    """`inserted`, `updated` and `deleted`, once it is written; what is missing is none, or all that was written."""


def appended(batch: DataFrame, files: Files, removed: Sequence[str] = ()) -> Change:
    """`removed` are written again beside the batch."""
    if not removed:
        return Change(batch)
    new, seen = _observed(batch, "inserted", None)
    return Change(files.read(removed).unionByName(new), tuple(removed), seen={"inserted": seen})


def replaced_range(batch: DataFrame, files: Files, load: Load, *, whole: bool) -> Change:
    from pyspark.sql import functions as F

    inside = F.coalesce(F.expr(range_predicate(files.schema, load)), F.lit(False))
    touched = files.names if whole else files.holding(files.tagged(files.names).where(inside))
    if not touched:
        return appended(batch, files)
    new, inserted = _observed(batch, "inserted", None)
    old, deleted = _observed(files.read(touched), "deleted", inside)
    seen = {"inserted": inserted, "deleted": deleted}
    return Change(old.where(~inside).unionByName(new), tuple(touched), seen=seen)


def upserted(batch: DataFrame, files: Files, load: Load, within: Callable[[DataFrame], Sequence[str]]) -> Change:
    """`within` names the files that may hold the batch's keys."""
    return _Upsert(batch, files, load).change(within)


class _Upsert:
    def __init__(self, batch: DataFrame, files: Files, load: Load) -> None:
        from pyspark.sql import functions as F

        self._files, self._load = files, load
        self._held = hold(batch, load.keys)
        self._names = [name for name in batch.columns if name != DELETED]
        self._deletes = DELETED in batch.columns
        self._same = F.expr(same_row(load.keys, self._held.ranges))
        schema = self._held.batch.select(*map(spark_name, self._names)).schema
        deleted = f"coalesce({S}.{spark_name(DELETED)}, false)" if self._deletes else "false"
        there = f"{S}.{spark_name(load.keys[0])} IS NOT NULL"
        won = "false" if load.only_new else f"coalesce({wins(schema, load)}, false)"
        self._won = F.expr(f"{there} AND NOT {deleted} AND {won}")
        self._gone = F.expr(f"{there} AND {deleted} AND coalesce({not_older(schema, load)}, true)")

    def change(self, within: Callable[[DataFrame], Sequence[str]]) -> Change:
        matches = self._matches(within(self._held.batch))
        touched = [] if self._load.only_new else self._files.holding(matches)
        if touched:
            touched = self._files.holding(self._joined(touched, "inner").where(self._won | self._gone))
        if self._files.is_whole:
            touched = list(self._files.names)
        fresh, inserted = _observed(self._fresh(matches), "inserted", None)
        if not touched:
            frame = fresh.coalesce(1) if is_small(self._load.rows) else fresh
            return Change(frame, (), self._held.rows, {"inserted": inserted})
        kept, seen = self._rewritten(touched)
        frame = kept.unionByName(fresh)
        if is_small(self._load.rows):
            frame = frame.coalesce(len(touched))  # as many files as before: every later load opens them all
        return Change(frame, tuple(touched), self._held.rows, {"inserted": inserted, **seen})

    def _matches(self, candidates: Sequence[str]) -> DataFrame:
        """Keys of the batch that the table has, and where; small, as the batch is."""
        keys = [spark_name(key) for key in self._load.keys]
        ours = self._held.sent().select(*keys).alias(S)
        theirs = self._files.tagged(candidates).select(*keys, FILE).alias(T)
        return theirs.join(ours, self._same).select(*(f"{T}.{key}" for key in keys), FILE).localCheckpoint()

    def _joined(self, names: Sequence[str], how: str) -> DataFrame:
        return self._files.tagged(names).alias(T).join(self._held.sent().alias(S), self._same, how)

    def _fresh(self, matches: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        keys = self._load.keys
        found = matches.select(*(F.col(spark_name(key)).alias(f"k{i}") for i, key in enumerate(keys)))
        sent = F.broadcast(found) if self._held.is_light else found
        same = [self._held.batch[spark_name(key)] == sent[f"k{i}"] for i, key in enumerate(keys)]
        fresh = self._held.batch.join(sent, same, "left_anti")
        return only_columns(survivors(fresh), self._files.schema)

    def _rewritten(self, touched: Sequence[str]) -> tuple[DataFrame, dict[str, Observation]]:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        seen = Observation()
        counts = [F.count_if(self._won).alias("updated"), F.count_if(self._gone).alias("deleted")]
        joined = self._joined(touched, "left").observe(seen, *counts).where(~self._gone)
        # Found whatever the case, as everywhere in Spark.
        ours = {name.casefold(): name for name in self._names}
        columns = [self._value(name, ours.get(name.casefold())).alias(name) for name in self._files.schema.names]
        return joined.select(*columns), {"updated": seen, "deleted": seen}

    def _value(self, name: str, ours: str | None) -> Column:
        from pyspark.sql import functions as F

        kept = F.col(f"{T}.{spark_name(name)}")
        if ours is None:
            return kept
        new = F.lit("update") if ours == OP else F.col(f"{S}.{spark_name(ours)}")
        return F.when(self._won, new).otherwise(kept)


def not_older(schema: StructType, load: Load) -> str:
    """Than the table's row: a delete says nothing else that could differ."""
    if not load.cursor or load.later_wins or _is_text(schema, load.cursor):
        return "true"
    ours, theirs = ([f"{side}.{spark_name(c)}" for c in load.cursor] for side in (S, T))
    if load.fallback is not None:
        other = spark_name(load.fallback)
        ours[0], theirs[0] = f"coalesce({ours[0]}, {S}.{other})", f"coalesce({theirs[0]}, {T}.{other})"
    return f"{ours[0]} IS NULL OR struct({', '.join(ours)}) >= struct({', '.join(theirs)})"


def _is_text(schema: StructType, columns: Sequence[str]) -> bool:
    return any(schema[name].dataType.typeName() in ("string", "varchar", "char") for name in columns)


def _observed(frame: DataFrame, name: str, which: Column | None) -> tuple[DataFrame, Observation]:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    count = F.count(F.lit(1)) if which is None else F.count_if(which)
    return frame.observe(seen, count.alias(name)), seen
