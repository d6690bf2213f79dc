"""Whether many small loads slow down: run after run of a few changes from SQLite into Delta or Iceberg, in one warm
session.

    python benchmarks/care.py [--target delta | iceberg] [--runs 500] [--changes 20] [--compact 0s | off] [--most 1.3]

Table care compacts as soon as there are enough small files. The figure is the median of the last runs against that of
runs 6 to 15; the first ones warm the session up. At the end both sides must hold the same rows.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import floodmark
from floodmark.connections.iceberg import IcebergConnection
from floodmark.connections.iceberg_catalog import Catalog
from floodmark.model.outcome import RunResult
from floodmark.model.plan import Work
from floodmark.model.spec import SparkSpec
from floodmark.spark.session import open_session, stop_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROJECT = """\
connections:
  shop: {{type: sqlite, path: shop.db}}
  lake: {{type: {target}, path: lake}}
state: sqlite:///state.db
pipelines:
  orders:
    source: {{connection: shop, table: orders}}
    change: {{by: timestamp, column: updated_at, delay: 0s}}
    target: {{connection: lake, table: orders, mode: upsert, keys: [id], maintenance: {{compact: {compact}}}}}
"""
FIRST = datetime(2026, 1, 1)
EARLY = slice(5, 15)
LATE = 11


@dataclass(frozen=True)
class Run:
    seconds: float
    result: RunResult

    @property
    def compacted(self) -> bool:
        return any(notice.startswith("compacted") for notice in self.result.notices)


class Shop:
    """Half of the changes are new rows, half touch rows all over the table."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "shop.db"
        self._rows = 0
        with closing(sqlite3.connect(self._path)) as db:
            db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, val TEXT, updated_at DATETIME NOT NULL)")

    def change(self, number: int, changes: int) -> None:
        at = str(FIRST + timedelta(minutes=number))
        new = range(self._rows, self._rows + (changes // 2 if self._rows else 1000))
        old = [(number * 7919 + i * 104729) % self._rows for i in range(changes // 2)] if self._rows else []
        self._rows = new.stop
        with closing(sqlite3.connect(self._path)) as db, db:
            db.executemany("INSERT INTO orders VALUES (?, ?, ?)", [(i, f"v{i}", at) for i in new])
            db.executemany("UPDATE orders SET val = ?, updated_at = ? WHERE id = ?", [(at, at, i) for i in old])

    def rows(self) -> list[tuple[int, str]]:
        with closing(sqlite3.connect(self._path)) as db:
            return db.execute("SELECT id, val FROM orders ORDER BY id").fetchall()


def measure(folder: Path, target: str, runs: int, changes: int, compact: str) -> list[Run]:
    (folder / "floodmark.yml").write_text(PROJECT.format(target=target, compact=compact))
    shop, done = Shop(folder), []
    spark = open_session(SparkSpec(), needs=[target, "sqlite"], log_file=folder / "spark.log", work=Work(0))
    try:
        project = floodmark.load(folder / "floodmark.yml", spark=spark)
        for number in range(runs):
            shop.change(number, changes)
            began = time.perf_counter()
            result = project.run("orders")
            done.append(Run(time.perf_counter() - began, result))
            if result.failure is not None:
                raise result.failure
            if (number + 1) % 50 == 0:
                print(f"  {number + 1} runs, the last 10: {median(done[-10:]):.2f} s {stages(done[-10:])}", flush=True)
        held = table_of(target, folder, spark).orderBy("id").select("id", "val")
        assert [tuple(row) for row in held.collect()] == shop.rows()
    finally:
        stop_session(spark)
    return done


def table_of(target: str, folder: Path, spark: SparkSession) -> DataFrame:
    if target == "delta":
        return spark.read.format("delta").load(str(folder / "lake" / "orders"))
    catalog = Catalog(IcebergConnection(path="lake"), folder)
    catalog.attach(spark)
    return spark.table(catalog.sql_name("default", "orders"))


def median(runs: list[Run]) -> float:
    return statistics.median(run.seconds for run in runs)


def stages(runs: list[Run]) -> str:
    names = dict.fromkeys(name for run in runs for name in run.result.seconds if name not in ("spark", "care"))
    found = {name: statistics.median(run.result.seconds.get(name, 0.0) for run in runs) for name in names}
    return " ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in found.items())


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", choices=["delta", "iceberg"], default="delta")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--compact", default="0s")
    parser.add_argument("--most", type=float, default=1.3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = measure(Path(folder), asked.target, asked.runs, asked.changes, asked.compact)
    early, late = runs[EARLY], runs[-LATE:]
    ratio = median(late) / median(early)
    care = [run.result.seconds["care"] for run in runs if "care" in run.result.seconds]
    shown = f", {statistics.median(care):.1f} s each" if care else ""
    print(f"runs 6-15     {median(early):.2f} s  {stages(early)}")
    print(f"the last {LATE}   {median(late):.2f} s  {stages(late)}")
    print(f"compactions   {sum(run.compacted for run in runs)}{shown}")
    print(f"ratio         {ratio:.2f} (at most {asked.most})")
    return 0 if ratio <= asked.most else 1


if __name__ == "__main__":
    sys.exit(main())
