"""Delta tables: data and head in one commit.

The transaction id (`floodmark:<pipeline>:main`, ordinal) makes Delta skip a batch that has landed, and refuse one
whose ordinal somebody else commits at the same time: that is the fence against a runner that was paused. Delta skips in
silence, so after each load the history is asked whether *this* batch is in it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from floodmark.connections.delta import DeltaConnection
from floodmark.errors import TargetError
from floodmark.model.care import Care, CareDone
from floodmark.model.outcome import Landed, Load, TargetState
from floodmark.model.spec import PipelineSpec
from floodmark.targets.delta.condition import condition
from floodmark.targets.delta.log import DeltaLog, app_id, read_log
from floodmark.targets.folder import check_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class DeltaTarget:
    """What only a load or the table's care needs is imported by them: most runs find nothing new."""

    def __init__(self, connection: DeltaConnection, spec: PipelineSpec, root: Path) -> None:
        self._spec = spec
        self._path = connection.table_path(root, spec.target.table, "target.table", spec.at("target.table"))
        self._local = Path(self._path) if connection.is_local else None

    @property
    def resource(self) -> str:
        return f"delta:{self._path}"

    def inspect(self, *, deep: bool = False) -> TargetState:
        self._check_writable()
        log = self._log(deep=deep)
        if log is None:
            return TargetState(exists=False)
        return TargetState(
            exists=True,
            table_id=log.table_id,
            version=log.version,
            landed=log.landed(self._spec.name),
            top_ordinal=log.spent[app_id(self._spec.name)],
            wiped_by=log.wiped_by(),
            has_rows=log.has_files,
            columns=() if log.is_untouched(self._spec.name) else log.columns,
            partitions=log.partitions,
            kept=log.kept(self._spec.name),
            condition=condition(log),
        )

    def find(self, batch_id: str) -> Landed | None:
        log = self._log()
        found = [] if log is None else [c for c in log.landed(self._spec.name) if c.head.batch == batch_id]
        return found[0] if found else None

    def prepare(self, spark: SparkSession) -> None:
        from floodmark.targets.delta.load import DeltaLoads

        DeltaLoads(self._spec, self._path).prepare(spark)

    def load(self, spark: SparkSession, batch: DataFrame, load: Load) -> Landed | None:
        from floodmark.targets.delta.load import DeltaLoads

        done = DeltaLoads(self._spec, self._path).load(spark, batch, load, self._log())
        landed = self.find(load.intent.batch)
        if landed is None:
            return None
        rows = landed.rows if done.read is None else replace(landed.rows, read=done.read)
        return replace(landed, notices=done.notices, rows=rows)

    def small_files(self) -> int:
        from floodmark.targets.delta.care import small_files

        return small_files(self._path)

    def care(self, spark: SparkSession, wanted: Care) -> CareDone:
        from floodmark.targets.delta.care import take_care

        log = self._log(deep=wanted.step == "keep")
        return CareDone() if log is None else take_care(spark, self._path, log, wanted, self._spec)

    def _check_writable(self) -> None:
        """Known before anything is read, where the folder is on this machine."""
        if self._local is not None:
            check_folder(self._local, self._spec.target.table, self._spec.at("target.connection"))

    def _log(self, *, deep: bool = False) -> DeltaLog | None:
        try:
            return read_log(self._path, self._spec.name, deep=deep)
        except TargetError as error:
            error.table = self._spec.target.table
            raise error.located(declared_at=self._spec.at("target.connection")) from error
