"""A few changes into a big table, in a session that is warm: where the time of a run goes.

    python benchmarks/merge.py [--rows 1000000] [--changes 10000] [--rounds 5] [--recent] [--jobs]
                               [--variant NAME:spark.setting=value,... ...]

Each round changes rows at random keys (`--recent`: the newest keys) and runs the pipeline. Variants, sets of Spark
settings, take turns within a round: on a machine that others use, only what ran side by side can be compared, and the
processor's seconds (of Spark's JVM alone) are the steadier figure.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.shop import Shop
from tests.services import PostgresServer
from tests.spark_jobs import Watched, watched

import floodmark
from floodmark.model.plan import Work
from floodmark.model.spec import SparkSpec
from floodmark.spark.session import open_session, own_session, stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WARMING = 2
"""Rounds that are not counted: until then the JVM still compiles."""


@dataclass
class Variant:
    name: str
    settings: Mapping[str, str]
    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    stages: list[dict[str, float]] = field(default_factory=list)
    seen: Watched = field(default_factory=Watched)

    @classmethod
    def parse(cls, text: str) -> Variant:
        name, _, settings = text.partition(":")
        return cls(name, dict(pair.split("=", 1) for pair in settings.split(",") if pair))

    def __str__(self) -> str:
        by_stage = {name: median(s.get(name, 0.0) for s in self.stages) for name in self.stages[-1]}
        shown = "  ".join(f"{name} {seconds:.2f}" for name, seconds in by_stage.items())
        return (
            f"{self.name:12} {median(self.seconds):6.2f} s (best {min(self.seconds):.2f})  "
            f"processor {median(self.processor):6.2f} s  {len(self.seen.jobs)} jobs {self.seen.stages} stages "
            f"{self.seen.tasks} tasks  {shown}"
        )


def change(shop: Shop, count: int, *, recent: bool) -> None:
    """Stamped a moment after the newest."""
    keys = range(shop.rows - count + 1, shop.rows + 1) if recent else random.sample(range(1, shop.rows + 1), count)
    shop.execute(
        f"UPDATE orders SET status = 'changed {random.random()}', updated_at = (SELECT max(updated_at) + "
        f"interval '1 second' FROM orders) WHERE order_id = ANY (ARRAY[{','.join(map(str, keys))}]::bigint[])"
    )


def processor(pid: int) -> float:
    """Seconds of a process and all that it started."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    children = [int(c) for task in Path(f"/proc/{pid}/task").glob("*/children") for c in task.read_text().split()]
    return used + sum(processor(child) for child in children)


def measure(shop: Shop, spark: SparkSession, variant: Variant, *, counts: bool) -> None:
    session = own_session(spark)
    for name, value in variant.settings.items():
        session.conf.set(name, value)
    project = floodmark.load(shop.folder / "floodmark.yml", spark=session)
    context: Any = spark.sparkContext
    jvm = context._gateway.proc.pid
    with watched(spark) as seen:
        used, began = processor(jvm), time.perf_counter()
        result = project.run("orders")
        seconds, used = time.perf_counter() - began, processor(jvm) - used
    if not result.success:
        raise SystemExit("\n".join(result.errors))
    if counts:
        variant.seconds.append(seconds)
        variant.processor.append(used)
        variant.stages.append(dict(result.seconds))
        variant.seen = seen


def files_of(shop: Shop) -> int:
    from deltalake import DeltaTable

    return len(DeltaTable(shop.folder / "lake" / "orders").file_uris())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--recent", action="store_true")
    parser.add_argument("--jobs", action="store_true", help="list the jobs of each variant's last run")
    parser.add_argument("--variant", action="append", type=Variant.parse, help="NAME:setting=value,...")
    asked = parser.parse_args()
    variants = asked.variant or [Variant("as it is", {})]
    with PostgresServer() as server, tempfile.TemporaryDirectory() as scratch:
        shop = Shop(server, Path(scratch, "shop"), asked.rows)
        path = shop.declare()
        log = Path(scratch, "spark.log")
        spark = open_session(
            SparkSpec(), needs=["delta", "postgres"], log_file=log, work=Work(asked.changes, asked.rows)
        )
        first = floodmark.load(path, spark=spark).run("orders")
        print(f"{asked.rows:,} rows  first load {first.total_seconds:.1f} s  {files_of(shop)} files", flush=True)
        for number in range(asked.rounds + WARMING):
            for variant in variants:
                change(shop, asked.changes, recent=asked.recent)
                measure(shop, spark, variant, counts=number >= WARMING)
        for variant in variants:
            print(variant)
            if asked.jobs:
                print(variant.seen)
        print(f"{files_of(shop)} files after {len(variants) * (asked.rounds + WARMING)} runs")
        stop_session(spark)


if __name__ == "__main__":
    main()
