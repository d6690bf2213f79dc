"""Settings of the Spark that we start, by where it runs and how much work lies ahead; the user's own win."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from floodmark.model.plan import Work
from floodmark.model.spec import SparkSpec

SESSION_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    # A value that does not fit its column must fail the load, not become NULL.
    "spark.sql.ansi.enabled": "true",
    # A name may hold ${…}, which Spark would take for one of its settings.
    "spark.sql.variable.substitute": "false",
    # The default, INT96, holds nanoseconds from 1677 to 2262 for most other readers: 9999-12-31 would come out wrong.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""Wanted of every session, whoever started Spark."""

DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

ICEBERG_SETTINGS = {"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"}
"""Its catalogs are set on the session that needs them: only this must be there when Spark starts."""

LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    # A merge takes all the memory that it is given before it spills: half of the usual share costs no time.
    "spark.memory.fraction": "0.3",
    "spark.ui.enabled": "false",
    # Each query is described for the UI, with all its parts, whether there is one or not.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.catalogImplementation": "in-memory",
    # The defaults, 50 and 200, are for clusters: here each small commit would take seconds.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "4",
}

LEAN_JVM = "-XX:+UseSerialGC -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40"
"""A heap that follows what is alive in it: G1 would let it grow to the limit on any long load."""

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""For small work, where the compiler's second tier never pays back: halves the processor time of a cold run. With the
first tier alone the JVM reserves little room for its code: once that is full, it throws code away and compiles it
again."""

SMALL_WORK = 500_000
"""Rows that are read and written."""

SMALL_TABLE = 20_000_000
"""Rows of the table beside them: a small batch goes over its keys alone."""

UNKNOWN = Work()

SMALL_BATCH = 100_000
"""Rows of a batch that is held in memory while it is merged."""

BROADCAST_BYTES = 16 << 20
"""What a batch may weigh to be sent to every task: the driver holds all of it for a moment."""

HELD_BATCH_SETTINGS = {"spark.databricks.delta.merge.materializeSource": "none"}
"""For a load whose batch is held already: Delta would read it once more into a copy of its own."""

SMALL_MERGE_SETTINGS = {
    **HELD_BATCH_SETTINGS,
    # One new file for each merge, not one for each partition of a shuffle: every later merge has to open them all.
    "spark.databricks.delta.optimizeWrite.enabled": "true",
}
"""For the merge of a small batch alone."""

LISTS = {
    "spark.driver.extraJavaOptions": " ",
    "spark.executor.extraJavaOptions": " ",
    "spark.driver.extraClassPath": os.pathsep,
    "spark.jars": ",",
    "spark.sql.extensions": ",",
}
"""Settings that hold several values: the user's are added to ours, or one more driver would take Delta away."""


def settings_for(
    spec: SparkSpec,
    *,
    needs: list[str],
    log_file: Path,
    work: Work = UNKNOWN,
    tell: Callable[[str], None] = lambda _: None,
    stays: bool = False,
) -> dict[str, str]:
    """Every setting for a Spark that is about to be started, the user's own on top. One that `stays` for later runs is
    the same whatever this run's work is."""
    from floodmark.spark.jars import jars_for  # here, since quiet runs read this file and need no network

    asked = as_text(spec.config)
    local = is_local(master := asked.get("spark.master") or spec.master or "local[*]")
    jars = [str(path) for path in jars_for(needs, tell=tell)]
    settings = {
        "spark.app.name": "floodmark",
        "spark.master": master,
        **SESSION_SETTINGS,
        "spark.log.level": "WARN",
        "spark.ui.showConsoleProgress": "false",
        # With each column that is written down PySpark tells the JVM from where: two calls of five are for that.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Timestamps that pass through java.sql types take the JVM's zone, whatever the session's is.
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
    }
    for need, own in (("delta", DELTA_SETTINGS), ("iceberg", ICEBERG_SETTINGS)):
        if need in needs:
            settings |= {key: _joined(key, settings.get(key), value) for key, value in own.items()}
    if local:
        warehouse = (log_file.parent / "warehouse").absolute()
        settings |= LOCAL_SETTINGS | {"spark.sql.warehouse.dir": warehouse.as_uri()}
        if "GC" not in asked.get("spark.driver.extraJavaOptions", ""):
            settings["spark.driver.extraJavaOptions"] += f" {LEAN_JVM}"  # a JVM refuses two collectors
        if not stays:
            settings |= sized_settings(work)
        if not stays and work.is_below(SMALL_WORK) and work.beside <= SMALL_TABLE:
            settings["spark.driver.extraJavaOptions"] += f" {QUICK_JVM}"
    if jars:
        # On the class path they load quicker than through `spark.jars`, which copies them; a cluster needs the copies.
        settings |= {"spark.driver.extraClassPath": os.pathsep.join(jars)} if local else {"spark.jars": ",".join(jars)}
    return settings | {key: _joined(key, settings.get(key), value) for key, value in asked.items()}


def sized_settings(work: Work) -> dict[str, str]:
    """For a session, by the work ahead of it. Adaptive execution makes each stage a job of its own, planned anew: more
    time than a small batch can win back."""
    return {"spark.sql.adaptive.enabled": "false"} if work.is_below(SMALL_WORK) else {}


def _joined(key: str, ours: str | None, users: str) -> str:
    separator = LISTS.get(key)
    if separator is None or not ours:
        return users
    if separator == " ":
        return f"{ours} {users}"  # the JVM takes the last of two options
    held = users.split(separator)  # first: a class is taken from the first jar that has it
    return separator.join([*held, *(part for part in ours.split(separator) if part not in held)])


def as_text(config: Mapping[str, str | int | float | bool]) -> dict[str, str]:
    return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in config.items()}


def is_local(master: str) -> bool:
    return re.match(r"local(\[|$)", master) is not None
