"""Delta tables: data and head in one commit.

The transaction id (`floodmark:<pipeline>:main`, ordinal) makes Delta skip a batch that has landed, and refuse one
whose ordinal somebody else commits at the same time: that is the fence against a runner that was paused. Delta skips in
silence, so after each statement the history is asked whether *this* batch is in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from floodmark.connections.delta import DeltaConnection
from floodmark.errors import TargetError
from floodmark.model.care import Care, CareDone
from floodmark.model.names import DELETED
from floodmark.model.outcome import Head, Landed, Load, TargetState
from floodmark.model.spec import PipelineSpec
from floodmark.targets.deletes import check_deletes, has_deletes, survivors, table_schema
from floodmark.targets.delta_care import condition, small_files, take_care
from floodmark.targets.delta_log import DeltaLog, app_id, read_log
from floodmark.targets.delta_replace import Winners, is_replaceable, winners
from floodmark.targets.delta_sql import OURS, change_table, cluster_table, create_table, prepare_again, table_at
from floodmark.targets.delta_types import refuse_columns
from floodmark.targets.folder import check_folder
from floodmark.targets.history import as_versions
from floodmark.targets.lake_history import LakeHistory
from floodmark.targets.lake_sql import Range, S, T, merge, range_predicate, same_row
from floodmark.targets.modes import other_partitions
from floodmark.targets.schema import Fit, fit
from floodmark.targets.settings import set_for_now
from floodmark.targets.small_batch import hold, is_small, small_merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

_BATCH = "floodmark_batch"
_SETTINGS = "spark.databricks.delta."


class DeltaTarget:
    def __init__(self, connection: DeltaConnection, spec: PipelineSpec, root: Path) -> None:
        self._spec = spec
        self._path = connection.table_path(root, spec.target.table, "target.table", spec.at("target.table"))
        self._local = Path(self._path) if connection.is_local else None

    @property
    def resource(self) -> str:
        return f"delta:{self._path}"

    def inspect(self, *, deep: bool = False) -> TargetState:
        log = self._log(deep=deep)
        self._check_writable()
        if log is None:
            return TargetState(exists=False)
        return TargetState(
            exists=True,
            table_id=log.table_id,
            version=log.version,
            landed=log.landed(self._spec.name),
            top_ordinal=log.spent[self._app_id],
            wiped_by=log.wiped_by(),
            has_rows=log.has_files,
            columns=() if self._is_untouched(log) else log.columns,
            partitions=log.partitions,
            kept=log.kept(self._spec.name),
            condition=condition(log),
        )

    def find(self, batch_id: str) -> Landed | None:
        log = self._log()
        found = [] if log is None else [c for c in log.landed(self._spec.name) if c.head.batch == batch_id]
        return found[0] if found else None

    def load(self, spark: SparkSession, batch: DataFrame, load: Load) -> Landed | None:
        check_deletes(batch, self._spec)
        if load.mode == "history":
            batch = as_versions(batch, load, self._spec)
        refuse_columns(batch.schema, self._spec.target.table)
        log = self._log()
        fitted = Fit(batch)
        anew = load.intent.full
        if log is None:
            for statement in create_table(self._path, batch.drop(DELETED), self._spec.target, self._spec.name):
                spark.sql(statement)
        elif self._is_untouched(log):
            spark.sql(prepare_again(self._path, batch.drop(DELETED), self._spec.target))
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
            if anew and self._spec.target.cluster_by:
                spark.sql(cluster_table(self._path, self._spec.target))
        landed = self.find(load.intent.batch)
        if landed is None:
            return None
        rows = landed.rows if read is None else replace(landed.rows, read=read)
        return replace(landed, notices=fitted.notices, rows=rows)

    def prepare(self, spark: SparkSession) -> None:
        """Delta puts a table's files together from its log when it is first asked about them: not by an append."""
        if self._spec.target.matches_keys:
            spark.sql(f"DESCRIBE DETAIL {table_at(self._path)}").collect()

    def small_files(self) -> int:
        return small_files(self._path)

    def care(self, spark: SparkSession, wanted: Care) -> CareDone:
        log = self._log(deep=wanted.step == "keep")
        return CareDone() if log is None else take_care(spark, self._path, log, wanted, self._spec)

    def _is_untouched(self, log: DeltaLog) -> bool:
        """A first load made the table and then failed: what it was to hold may have been declared anew since."""
        return not log.has_files and log.properties.get(OURS) == self._spec.name and not log.landed(self._spec.name)

    def _fitted(self, spark: SparkSession, log: DeltaLog, batch: DataFrame) -> Fit:
        table = spark.read.format("delta").load(self._path).schema
        wanted = fit(table, batch, self._spec)
        for statement in change_table(self._path, wanted, log.properties):
            spark.sql(statement)
        return wanted

    def _rows(self, spark: SparkSession, batch: DataFrame, load: Load) -> AbstractContextManager[DataFrame]:
        """As they go into a table that holds nothing of them yet."""
        if load.mode == "history":
            return LakeHistory(spark, load, self._spec.target.history).alone(batch)
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
            self._replace(winners(spark, self._path, held, load), load, held.ranges)
        else:
            with small_merge(spark):
                self._merge(spark, held.sent(), load, held.ranges)
        return held.rows

    def _replace(self, won: Winners, load: Load, ranges: Mapping[str, Range]) -> None:
        from pyspark.sql import functions as F

        if not won.rows:
            self._writer(won.batch, load).mode("append").save(self._path)
            return
        writer = self._writer(F.broadcast(won.batch).alias(S), load).mode("overwrite")
        writer.option("targetAlias", T).option("replaceOn", same_row(load.keys, ranges)).save(self._path)

    def _merge(self, spark: SparkSession, batch: DataFrame, load: Load, ranges: Mapping[str, Range]) -> None:
        self._commit(spark, batch, load.head, merge(table_at(self._path), _BATCH, batch.schema, load, ranges))

    def _add_versions(self, spark: SparkSession, fitted: Fit, load: Load, log: DeltaLog) -> int | None:  # noqa: ARG002
        history = LakeHistory(spark, load, self._spec.target.history)
        held = hold(fitted.batch, load.keys)
        changes = history.changes(held.batch, spark.read.format("delta").load(self._path))
        ranges = held.ranges if load.cursor else {}
        schema = table_schema(fitted.batch)
        self._commit(spark, changes, load.head, history.merge(table_at(self._path), _BATCH, schema, ranges))
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
            if self._spec.target.partition_by:
                writer = writer.partitionBy(*self._spec.target.partition_by)
        elif load.mode == "replace_partitions":
            writer = writer.mode("overwrite").option("partitionOverwriteMode", "dynamic")
        elif load.intent.replaces:
            predicate = range_predicate(batch.schema, load)
            writer = writer.mode("overwrite").option("replaceWhere", predicate)
        else:
            writer = writer.mode("append")
        writer.save(self._path)

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

    def _check_writable(self) -> None:
        """Known before anything is read, where the folder is on this machine."""
        if self._local is not None:
            check_folder(self._local, self._spec.target.table, self._spec.at("target.connection"))

    def _check_partitions(self, log: DeltaLog) -> None:
        """Delta replaces the table's own partitions, which may be the whole table."""
        declared = self._spec.target.partition_by
        if self._spec.target.mode == "replace_partitions" and log.has_files and log.partitions != declared:
            raise other_partitions(self._spec, log.partitions)

    # -- the log --------------------------------------------------------------------------------------------------

    def _log(self, *, deep: bool = False) -> DeltaLog | None:
        try:
            return read_log(self._path, self._spec.name, deep=deep)
        except TargetError as error:
            error.table = self._spec.target.table
            raise error.located(declared_at=self._spec.at("target.connection")) from error

    @property
    def _app_id(self) -> str:
        return app_id(self._spec.name)


def _metadata(head: Head) -> str:
    return json.dumps(head.to_dict(), separators=(",", ":"))
