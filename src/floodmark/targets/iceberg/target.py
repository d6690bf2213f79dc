"""Iceberg tables: each load is written to a branch of its own, which then becomes main in one step.

Iceberg itself does not refuse a batch that has landed, nor one whose place somebody else has taken. So main may not
have moved since the load was decided on (`branch.py`), and what it holds is told by its own snapshots.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from floodmark.connections.iceberg import IcebergConnection
from floodmark.connections.iceberg_catalog import Catalog
from floodmark.errors import TargetError
from floodmark.model.care import Care, CareDone
from floodmark.model.outcome import Landed, Load, TargetState
from floodmark.model.spec import PipelineSpec
from floodmark.targets.deletes import check_deletes, table_schema
from floodmark.targets.folder import check_folder
from floodmark.targets.history import as_versions
from floodmark.targets.iceberg.branch import Branch, branch_from
from floodmark.targets.iceberg.care import Caring, condition, small_files
from floodmark.targets.iceberg.names import refuse_table
from floodmark.targets.iceberg.shape import Shape, created, fitted, reshaped
from floodmark.targets.iceberg.snapshots import ATTEMPT, HEAD, RECENT, IcebergLog, Kept
from floodmark.targets.iceberg.sql import OURS, drop_columns, set_property
from floodmark.targets.iceberg.types import as_stored, refuse_columns
from floodmark.targets.lake_history import LakeHistory
from floodmark.targets.lake_sql import merge, range_predicate
from floodmark.targets.modes import other_partitions
from floodmark.targets.settings import set_for_now
from floodmark.targets.small_batch import hold, is_small

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession

_BATCH = "floodmark_batch"
_SETTINGS = "spark.sql.iceberg.snapshot-property."
_EXCLUDED = "spark.sql.optimizer.excludedRules"
_WHOLE_FILES = "org.apache.spark.sql.execution.datasources.v2.OptimizeMetadataOnlyDeleteFromTable"


class IcebergTarget:
    def __init__(self, connection: IcebergConnection, spec: PipelineSpec, root: Path) -> None:
        self._spec = spec
        self._catalog = Catalog(connection, root)
        declared_at = spec.at("target.table")
        self._table = connection.table_parts(spec.target.table, declared_at)
        refuse_table(self._table, spec.target.table, declared_at)

    @property
    def resource(self) -> str:
        return f"iceberg:{self._catalog.place}:{'.'.join(self._table)}"

    def inspect(self, *, deep: bool = False) -> TargetState:
        log = self._log()
        self._check_writable()
        if log is None:
            return TargetState(exists=False)
        return TargetState(
            exists=True,
            table_id=log.table_id,
            version=log.version,
            landed=log.landed(self._spec.name, None if deep else RECENT),
            top_ordinal=log.spent(self._spec.name),
            wiped_by=log.wiped_by(),
            has_rows=log.has_files,
            columns=() if self._is_untouched(log) else log.columns,
            partitions=tuple(log.partitions),
            condition=condition(log),
        )

    def small_files(self) -> int:
        log = self._log()
        return 0 if log is None else small_files(log)

    def care(self, spark: SparkSession, wanted: Care) -> CareDone:
        log = self._log()
        if log is None:
            return CareDone()
        self._catalog.attach(spark)
        keep = self._spec.target.maintenance.keep
        return Caring(spark, self._catalog.name, self._table, self._sql, keep).take(log, wanted)

    def find(self, batch_id: str) -> Landed | None:
        log = self._log()
        return None if log is None else self._found(log, batch_id)

    def load(self, spark: SparkSession, batch: DataFrame, load: Load) -> Landed | None:
        check_deletes(batch, self._spec)
        if load.mode == "history":
            batch = as_versions(batch, load, self._spec)
        refuse_columns(batch.schema, self._spec.target.table)
        self._catalog.attach(spark)
        batch = as_stored(batch)
        log = self._log() or self._created(spark, batch)
        if load.head.ordinal <= log.spent(self._spec.name):
            return None
        anew = load.intent.full or self._is_untouched(log)
        if not anew:
            self._check_partitions(log)
        make = reshaped if anew else fitted
        shape = make(spark, self._sql, batch, self._spec, log)
        with branch_from(log, spark, self._catalog.name, self._table, load.intent.batch) as branch:
            read = self._write(branch, shape, load, log, anew=anew)
            landed = self.publish(branch, load)
            if landed is not None:
                self._settle(spark, shape, landed)
        if landed is None:
            return None
        rows = landed.rows if read is None else replace(landed.rows, read=read)
        return replace(landed, notices=shape.notices, rows=rows)

    @property
    def _sql(self) -> str:
        return self._catalog.sql_name(*self._table)

    def _is_untouched(self, log: IcebergLog) -> bool:
        """A first load made the table and then failed: what it was to hold may have been declared anew since."""
        return log.main is None and log.properties.get(OURS) == self._spec.name

    def _created(self, spark: SparkSession, batch: DataFrame) -> IcebergLog:
        for statement in created(self._catalog, self._table, table_schema(batch), self._spec):
            spark.sql(statement)
        log = self._log()
        if log is None:
            raise TargetError(
                "the table was made, and the catalog does not show it",
                table=self._spec.target.table,
                declared_at=self._spec.at("target.connection"),
            )
        return log

    # -- statements -----------------------------------------------------------------------------------------------

    def _write(self, branch: Branch, shape: Shape, load: Load, log: IcebergLog, *, anew: bool) -> int | None:
        """How many rows the batch has, where that was seen."""
        if (load.mode in ("upsert", "history") or load.only_new) and not anew and log.has_files:
            merge = self._add_versions if load.mode == "history" else self._merge
            return merge(branch, shape.batch, load)
        if load.mode != "history":
            self._fill(branch, shape.whole(), load, anew=anew)
            return None
        with LakeHistory(branch.spark, load, self._spec.target.history).alone(shape.batch) as versions:
            self._fill(branch, replace(shape, batch=versions).whole(), load, anew=anew)
        return None

    def _fill(self, branch: Branch, batch: DataFrame, load: Load, *, anew: bool) -> None:
        if load.intent.replaces and not anew and load.mode != "replace_partitions":
            # Iceberg's own overwrite takes whole files; on a branch two steps are as good as one.
            self._delete(branch, range_predicate(batch.schema, load))
        self._put(branch, batch, load, anew=anew)

    def _put(self, branch: Branch, batch: DataFrame, load: Load, *, anew: bool) -> None:
        from pyspark.sql import functions as F

        writer = self._writer(branch, batch, load)
        if anew:
            writer.overwrite(F.lit(True))
        elif load.mode == "replace_partitions":
            writer.overwritePartitions()
            if branch.name not in self._tips():  # an empty batch makes no commit
                self._writer(branch, batch.limit(0), load).append()
        else:
            writer.append()

    def _tips(self) -> set[str | None]:
        log = self._log()
        return set() if log is None else {log.snapshots[tip].attempt for tip in log.branches.values()}

    def _writer(self, branch: Branch, batch: DataFrame, load: Load) -> DataFrameWriterV2:
        writer = batch.writeTo(branch.path)
        for name, value in _properties(branch, load).items():
            writer = writer.option(f"snapshot-property.{name}", value)
        return writer

    def _delete(self, branch: Branch, condition: str) -> None:
        # One of whole files, or of none, would be a snapshot without properties: nobody could tell that it is ours.
        rules = f"{branch.spark.conf.get(_EXCLUDED, None) or ''},{_WHOLE_FILES}".lstrip(",")
        with set_for_now(branch.spark, {f"{_SETTINGS}{ATTEMPT}": branch.name, _EXCLUDED: rules}):
            branch.spark.sql(f"DELETE FROM {branch.path} WHERE {condition}").collect()

    def _merge(self, branch: Branch, batch: DataFrame, load: Load) -> int | None:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        seen, held = Observation(), None
        if is_small(load.rows) and not load.only_new:
            # The range of its keys lets Iceberg leave whole files of the table alone.
            held = hold(batch, load.keys)
        source = held.batch if held else batch.observe(seen, F.count(F.lit(1)).alias("rows"))
        statement = merge(branch.path, _BATCH, batch.schema, load, held.ranges if held else {})
        self._commit(branch, source, load, statement)
        return held.rows if held else seen.get.get("rows")

    def _add_versions(self, branch: Branch, batch: DataFrame, load: Load) -> int | None:
        history = LakeHistory(branch.spark, load, self._spec.target.history)
        held = hold(batch, load.keys)
        changes = history.changes(held.batch, branch.spark.table(self._sql))
        ranges = held.ranges if load.cursor else {}
        self._commit(branch, changes, load, history.merge(branch.path, _BATCH, table_schema(batch), ranges))
        return held.rows

    def _commit(self, branch: Branch, batch: DataFrame, load: Load, statement: str) -> None:
        """One that takes its rows from the view of the batch."""
        batch.createOrReplaceTempView(_BATCH)
        settings = {f"{_SETTINGS}{name}": value for name, value in _properties(branch, load).items()}
        try:
            with set_for_now(branch.spark, settings):
                branch.spark.sql(statement).collect()
        finally:
            branch.spark.catalog.dropTempView(_BATCH)

    def publish(self, branch: Branch, load: Load) -> Landed | None:
        """Makes it main, if that is still where the load began; None when another load has taken this one's place."""
        log = self._log()
        if log is None or not branch.is_sound(log):
            self._check_overtaken(log, load)
            return None
        try:
            branch.publish()
        except Exception:
            # It may have gone through, or somebody else has moved main; all else is as it was.
            log = self._log()
            landed = None if log is None else self._found(log, load.intent.batch)
            if landed is not None:
                return landed
            if log is not None and log.main == branch.base and branch.name in log.branches:
                raise
            self._check_overtaken(log, load)
            return None
        return self.find(load.intent.batch)

    def _check_overtaken(self, log: IcebergLog | None, load: Load) -> None:
        """By another load of this pipeline, which has this one's place; or by somebody else: then it is tried again."""
        if log is None or load.head.ordinal > log.spent(self._spec.name):
            raise TargetError(
                "somebody else changed the table while the batch was written",
                table=self._spec.target.table,
                declared_at=self._spec.at("target.table"),
                transient=True,
            )

    def _settle(self, spark: SparkSession, shape: Shape, landed: Landed) -> None:
        """What may as well be done by the next load: the rows are there."""
        with suppress(Exception):
            log = self._log()
            tip = None if log is None or log.main is None else log.snapshots[log.main]
            if log is None or tip is None or tip.head != landed.head:
                return
            kept = Kept(landed.head, log.spent(self._spec.name), tip.id, tip.sequence, tip.live)
            spark.sql(set_property(self._sql, f"{HEAD}.{self._spec.name}", kept.written()))
            for statement in drop_columns(self._sql, shape.emptied):
                spark.sql(statement)

    # -- what is known without Spark --------------------------------------------------------------------------------

    def _log(self) -> IcebergLog | None:
        try:
            metadata = self._catalog.metadata(self._table[:-1], self._table[-1])
        except TargetError as error:
            error.table = self._spec.target.table
            raise error.located(declared_at=self._spec.at("target.connection")) from error
        return None if metadata is None else IcebergLog.of(metadata)

    def _found(self, log: IcebergLog, batch_id: str) -> Landed | None:
        return next((c for c in log.landed(self._spec.name) if c.head.batch == batch_id), None)

    def _check_writable(self) -> None:
        """Known before anything is read, where the warehouse is on this machine."""
        if self._catalog.folder is not None:
            check_folder(self._catalog.folder, self._spec.target.table, self._spec.at("target.connection"))

    def _check_partitions(self, log: IcebergLog) -> None:
        """The table's own partitions are replaced, which may be the whole table."""
        declared = self._spec.target.partition_by
        if self._spec.target.mode == "replace_partitions" and log.has_files and set(log.partitions) != set(declared):
            raise other_partitions(self._spec, log.partitions)


def _properties(branch: Branch, load: Load) -> dict[str, str]:
    """Of the snapshot that makes the load whole."""
    return {HEAD: json.dumps(load.head.to_dict(), separators=(",", ":")), ATTEMPT: branch.name}
