"""One batch into a Delta table: which statement, under which transaction id."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from floodmark.model.names import DELETED, spark_name
from floodmark.model.outcome import Head, Load
from floodmark.model.spec import PipelineSpec
from floodmark.spark.tuning import HELD_BATCH_SETTINGS, SMALL_MERGE_SETTINGS
from floodmark.targets.deletes import check_deletes, has_deletes, survivors, table_schema
from floodmark.targets.delta.log import DeltaLog, app_id
from floodmark.targets.delta.replace import Winners, is_replaceable, winners
from floodmark.targets.delta.sql import change_table, cluster_table, create_table, prepare_again, table_at
from floodmark.targets.delta.types import refuse_columns
from floodmark.targets.history import as_versions
from floodmark.targets.lake_history import LakeHistory
from floodmark.targets.lake_sql import Range, S, T, merge, range_predicate, same_row
from floodmark.targets.modes import other_partitions
from floodmark.targets.schema import Fit, fit
from floodmark.targets.settings import set_for_now
from floodmark.targets.small_batch import hold, is_small, set_for_held

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

_BATCH = "floodmark_batch"
_SETTINGS = "spark.databricks.delta."


@dataclass(frozen=True)
class Loaded:
    """Whether it landed, the table's history tells."""

    notices: tuple[str, ...] = ()
    read: int | None = None
    """Rows of the batch, where they were seen."""


@dataclass(frozen=True)
class DeltaLoads:
    """Into the table at `path`, for one pipeline."""

    spec: PipelineSpec
    path: str

    def load(self, spark: SparkSession, batch: DataFrame, load: Load, log: DeltaLog | None) -> Loaded:
        check_deletes(batch, self.spec)
        if load.mode == "history":
            batch = as_versions(batch, load, self.spec)
        refuse_columns(batch.schema, self.spec.target.table)
        fitted = Fit(batch)
        anew = load.intent.full
        if log is None:
            for statement in create_table(self.path, batch.drop(DELETED), self.spec.target, self.spec.name):
                spark.sql(statement)
        elif log.is_untouched(self.spec.name):
            spark.sql(prepare_again(self.path, batch.drop(DELETED), self.spec.target))
            anew = True
        elif not load.intent.full:
            self._check_partitions(log)
            fitted = self._fitted(spark, log, batch)
        read = None
        by_keys = load.mode in ("upsert", "history") or load.only_new
        if by_keys and not anew and log is not None and log.has_files:
            merge = self._add_versions if load.mode == "history" else self._upsert
            read = merge(spark, fitted, load, log)
        else:
            with self._rows(spark, fitted.batch, load) as whole:
                self._write(whole, load, anew=anew)
            if anew and self.spec.target.cluster_by:
                spark.sql(cluster_table(self.path, self.spec.target))
        return Loaded(fitted.notices, read)

    def prepare(self, spark: SparkSession) -> None:
        """Delta puts a table's files together from its log when somebody is about to read it: a load by keys is, an
        append is not. What it would read is told, and nothing is read."""
        if self.spec.target.matches_keys:
            keys = ", ".join(spark_name(key) for key in self.spec.target.keys)
            spark.sql(f"EXPLAIN SELECT {keys} FROM {table_at(self.path)}").collect()

    def _fitted(self, spark: SparkSession, log: DeltaLog, batch: DataFrame) -> Fit:
        table = spark.read.format("delta").load(self.path).schema
        wanted = fit(table, batch, self.spec)
        for statement in change_table(self.path, wanted, log.properties):
            spark.sql(statement)
        return wanted

    def _rows(self, spark: SparkSession, batch: DataFrame, load: Load) -> AbstractContextManager[DataFrame]:
        """As they go into a table that holds nothing of them yet."""
        if load.mode == "history":
            return LakeHistory(spark, load, self.spec.target.history).alone(batch)
        return nullcontext(survivors(batch))

    # -- statements -----------------------------------------------------------------------------------------------

    def _upsert(self, spark: SparkSession, fitted: Fit, load: Load, log: DeltaLog) -> int | None:
        """How many rows the batch has, where that was seen."""
        # Without updates a merge goes over its source once, and needs it nowhere else.
        if not is_small(load.rows) or load.only_new:
            self._merge(spark, fitted.batch, load, {})
            return None
        held = hold(fitted.batch, load.keys, load.cursor[0] if load.cursor else None)
        if fitted.is_whole and not has_deletes(fitted.batch) and is_replaceable(spark, held, load, log.properties):
            won = winners(spark, self.path, held, load)
            with set_for_held(spark, HELD_BATCH_SETTINGS):
                self._replace(won, load, held.ranges)
        else:
            with set_for_held(spark, SMALL_MERGE_SETTINGS):
                self._merge(spark, held.sent(), load, held.ranges)
        return held.rows

    def _replace(self, won: Winners, load: Load, ranges: Mapping[str, Range]) -> None:
        from pyspark.sql import functions as F

        if not won.rows:
            self._writer(won.batch, load).mode("append").save(self.path)
            return
        writer = self._writer(F.broadcast(won.batch).alias(S), load).mode("overwrite")
        writer.option("targetAlias", T).option("replaceOn", same_row(load.keys, ranges)).save(self.path)

    def _merge(self, spark: SparkSession, batch: DataFrame, load: Load, ranges: Mapping[str, Range]) -> None:
        self._commit(spark, batch, load.head, merge(table_at(self.path), _BATCH, batch.schema, load, ranges))

    def _add_versions(self, spark: SparkSession, fitted: Fit, load: Load, log: DeltaLog) -> int | None:  # noqa: ARG002
        history = LakeHistory(spark, load, self.spec.target.history)
        held = hold(fitted.batch, load.keys)
        changes = history.changes(held.batch, spark.read.format("delta").load(self.path))
        ranges = held.ranges if load.cursor else {}
        schema = table_schema(fitted.batch)
        self._commit(spark, changes, load.head, history.merge(table_at(self.path), _BATCH, schema, ranges))
        return held.rows

    def _commit(self, spark: SparkSession, batch: DataFrame, head: Head, statement: str) -> None:
        """One that takes its rows from the view of the batch."""
        batch.createOrReplaceTempView(_BATCH)
        try:
            with self._transaction(spark, head):
                spark.sql(statement).collect()
        finally:
            spark.catalog.dropTempView(_BATCH)

    def _write(self, batch: DataFrame, load: Load, *, anew: bool) -> None:
        writer = self._writer(batch, load)
        if anew:
            writer = writer.mode("overwrite").option("overwriteSchema", "true")
            if self.spec.target.partition_by:
                writer = writer.partitionBy(*self.spec.target.partition_by)
        elif load.mode == "replace_partitions":
            writer = writer.mode("overwrite").option("partitionOverwriteMode", "dynamic")
        elif load.intent.replaces:
            predicate = range_predicate(batch.schema, load)
            writer = writer.mode("overwrite").option("replaceWhere", predicate)
        else:
            writer = writer.mode("append")
        writer.save(self.path)

    def _writer(self, batch: DataFrame, load: Load) -> DataFrameWriter:
        return (
            batch.write.format("delta")
            .option("txnAppId", self._app_id)
            .option("txnVersion", str(load.head.ordinal))
            .option("userMetadata", _metadata(load.head))
        )

    @contextmanager
    def _transaction(self, spark: SparkSession, head: Head) -> Iterator[None]:
        """MERGE takes its transaction from session settings. Left on, they would swallow the next statement."""
        settings = {
            f"{_SETTINGS}write.txnAppId": self._app_id,
            f"{_SETTINGS}write.txnVersion": str(head.ordinal),
            f"{_SETTINGS}commitInfo.userMetadata": _metadata(head),
        }
        with set_for_now(spark, settings):
            yield

    def _check_partitions(self, log: DeltaLog) -> None:
        """Delta replaces the table's own partitions, which may be the whole table."""
        declared = self.spec.target.partition_by
        if self.spec.target.mode == "replace_partitions" and log.has_files and log.partitions != declared:
            raise other_partitions(self.spec, log.partitions)

    @property
    def _app_id(self) -> str:
        return app_id(self.spec.name)


def _metadata(head: Head) -> str:
    return json.dumps(head.to_dict(), separators=(",", ":"))
