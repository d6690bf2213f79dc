"""Care of a Delta table: OPTIMIZE, VACUUM, and the heads kept where the log's cleanup does not reach.

What is done is noted in the table itself, so that all who load into it agree on when it was last done: as the version
of a transaction id, in a commit without rows. A property would fail every writer that is at work beside it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from floodmark.errors import TargetError
from floodmark.model.care import Care, CareDone
from floodmark.model.ledger import PipelineState
from floodmark.model.outcome import Kept, Landed, Rows
from floodmark.model.rebuild import rebuild
from floodmark.model.spec import PipelineSpec
from floodmark.targets.delta.condition import interval
from floodmark.targets.delta.log import KEPT, NOTES, DeltaLog
from floodmark.targets.delta.sql import set_properties, table_at
from floodmark.targets.settings import set_for_now
from floodmark.targets.small_files import LARGE, SMALL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPACTED = {
    # Delta's own bounds, 1 GB, would write a table of some hundred megabytes anew each time.
    "spark.databricks.delta.optimize.minFileSize": str(SMALL),
    "spark.databricks.delta.optimize.maxFileSize": str(LARGE),
    # A file is written anew for its deleted rows, too. With Delta's own bound, a twentieth, changes from all over a
    # table have the whole of it written again each time that they add up to so little.
    "spark.databricks.delta.optimize.maxDeletedRowsRatio": "0.2",
}
LISTED = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "32"}
"""Tasks that list the table's folders; the default of 10,000 takes most of a minute on one machine."""

UNCHECKED = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}

WEEK = timedelta(days=7)
"""How long Delta itself keeps files for those who still read them."""


def small_files(path: str) -> int:
    """Files become one only within their partition."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        files = DeltaTable(path).get_add_actions(flatten=True)
    except (DeltaError, OSError) as error:
        raise TargetError(f"can't read the Delta table at {path}: {error}") from error
    values = [files[name].to_pylist() for name in files.schema.names if name.startswith("partition.")]
    places = zip(*values, strict=True) if values else ((),) * files.num_rows
    sizes = files["size_bytes"].to_pylist()
    found = Counter(place for place, size in zip(places, sizes, strict=True) if size < SMALL)
    return sum(count - 1 for count in found.values())


def take_care(spark: SparkSession, path: str, log: DeltaLog, wanted: Care, spec: PipelineSpec) -> CareDone:
    if wanted.step == "keep":
        return _keep(spark, path, log, wanted)
    if wanted.step == "compact":
        done = _compact(spark, path)
    else:
        done = _vacuum(spark, path, log, spec.target.maintenance.keep)
    _note(spark, path, wanted)
    return done


# -- the files ----------------------------------------------------------------------------------------------------


def _compact(spark: SparkSession, path: str) -> CareDone:
    with set_for_now(spark, _unless_chosen(spark, COMPACTED)):
        metrics = spark.sql(f"OPTIMIZE {table_at(path)}").collect()[0]["metrics"]
    return CareDone(metrics["numFilesRemoved"], metrics["numFilesAdded"])


def _vacuum(spark: SparkSession, path: str, log: DeltaLog, keep: timedelta | None) -> CareDone:
    retained = retention(log.properties, keep)
    settings = _unless_chosen(spark, LISTED)
    if keep is not None and retained < WEEK:
        settings |= UNCHECKED  # its user has said how long
    with set_for_now(spark, settings):
        spark.sql(f"VACUUM {table_at(path)} RETAIN {retained.total_seconds() / 3600:.6f} HOURS").collect()
    return CareDone(removed=_removed(path))


def retention(properties: Mapping[str, str], keep: timedelta | None) -> timedelta:
    """What the table itself asks for is somebody's promise to its readers: it counts where it is longer."""
    asked = interval(properties, "delta.deletedFileRetentionDuration", timedelta(0))
    return max(WEEK if keep is None else keep, asked)


def _removed(path: str) -> int:
    """Only the history says how many they were, where Delta writes it there."""
    from deltalake import DeltaTable

    for entry in DeltaTable(path).history(5):
        if entry.get("operation") == "VACUUM END":
            return int((entry.get("operationMetrics") or {}).get("numDeletedFiles") or 0)
    return 0


def _unless_chosen(spark: SparkSession, settings: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if spark.conf.get(name, None) is None}


def _note(spark: SparkSession, path: str, wanted: Care) -> None:
    """Appends nothing, which no other writer minds."""
    schema = spark.read.format("delta").load(path).schema
    writer = spark.createDataFrame([], schema).write.format("delta").mode("append")
    writer = writer.option("txnAppId", NOTES[wanted.step]).option("txnVersion", str(int(wanted.at.timestamp())))
    writer.save(path)


# -- the heads ----------------------------------------------------------------------------------------------------


def _keep(spark: SparkSession, path: str, log: DeltaLog, wanted: Care) -> CareDone:
    """Of every pipeline that loads into the table: the others may rest for longer than the log is kept."""
    if log.wiped_by() is not None:
        return CareDone()
    heads = {}
    for pipeline in sorted(log.pipelines()):
        landed = log.landed(pipeline)
        own = wanted.state if pipeline == wanted.state.pipeline else None
        state = own or rebuild(pipeline, landed, log.kept(pipeline))
        if landed and state is not None and state.head is not None and state.head.batch == landed[0].head.batch:
            heads[f"{KEPT}{pipeline}"] = _form(_kept(log, landed, state, wanted.at))
    if heads:
        spark.sql(set_properties(path, heads))
    return CareDone()


def _kept(log: DeltaLog, landed: tuple[Landed, ...], state: PipelineState, at: datetime) -> Kept:
    newest = landed[0]
    # Whether the table may be empty is told by the last load that changed anything.
    rows = next((c.rows for c in landed if c.rows.loaded or c.rows.deleted != 0), Rows(0, 0, 0, 0))
    return Kept(
        table_id=log.table_id,
        seen=log.version,
        at=at,
        version=newest.version,
        inserted=rows.inserted,
        updated=rows.updated,
        deleted=rows.deleted,
        head=newest.head,
        state=PipelineState(
            pipeline=state.pipeline,
            start=state.start,
            reached=state.reached,
            windows=state.windows,
            ahead=state.ahead,
            head=state.head,
            identity=state.identity,
            run_count=state.run_count,
            last_run_id=state.last_run_id,
            last_run_at=state.last_run_at,
            rows_total=state.rows_total,
        ),
    )


def _form(kept: Kept) -> str:
    return json.dumps(kept.model_dump(mode="json", exclude_defaults=True), separators=(",", ":"))
