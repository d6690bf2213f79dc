"""What a small change costs beside a table that grows: the same changes into 1, 5 and 20 million rows.

    python benchmarks/growth.py [--targets delta postgres iceberg mariadb] [--sizes 1000000 5000000 20000000]
                                [--changes 10000] [--rounds 3] [--scratch FOLDER] [--keep]

A round loads changes twice through the target's port: at keys from all over the table, and at keys among its newest
2 percent. One table grows from size to size, in one warm session. In a `--scratch` folder what was filled and measured
outlives a break: the same command goes on from there. It is removed at the end, unless `--keep` says otherwise.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.kept import NEEDS, Place, place

from floodmark.model.outcome import Rows
from floodmark.model.plan import Work
from floodmark.model.spec import SparkSpec
from floodmark.spark.session import open_session, stop_session
from floodmark.testing.target_suite import a_load, a_spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Told = dict[str, Any]
TARGETS = ("delta", "postgres")
SIZES = (1_000_000, 5_000_000, 20_000_000)
CHANGES = 10_000
ROUNDS = 3
SLICE = 500_000
"""Rows of a commit of a first load."""
NEWEST = 0.02
WHERE = ("all over", "newest")
LATER = 10**12
"""Above every cursor value of the first load."""
COLUMNS = (
    "id",
    "concat('order ', md5(concat(id, '-', {seed}))) AS val",
    "{seq} AS seq",
    "cast(id % 100000 / 100 AS decimal(12, 2)) AS amount",
    "cast(id % 50000 AS int) AS customer",
    "timestamp_micros(1700000000000000 + id * 1000) AS at",
)


@dataclass(frozen=True)
class Asked:
    sizes: Sequence[int]
    changes: int
    rounds: int
    warming: int = 4
    """Rounds of a new session that are not counted: until then the JVM compiles, and the first size looks dear."""


@dataclass
class Growing:
    """One table. How far it has come is in the name of its newest batch."""

    place: Place
    changes: int

    def __post_init__(self) -> None:
        state = self.place.open("upsert").inspect()
        self.ordinal = state.top_ordinal
        self.rows = int(state.landed[0].head.batch.rpartition("-")[2]) if state.landed else 0

    def fill(self, size: int) -> None:
        while self.rows < size:
            first, last = self.rows, min(self.rows + SLICE, size)
            batch = _rows(self._session(Work(last - first)).range(first, last, 1, 2), "id", 0)
            mode = "append" if first else "upsert"  # keys that are new, and known to be
            self._load(batch, mode, Work(last - first), last)
        self.place.settle()

    def change(self, where: str) -> float:
        """Seconds."""
        work = Work(self.changes, self.rows)
        span = self.rows if where == "all over" else max(int(self.rows * NEWEST), self.changes)
        step, first = span // self.changes, self.rows - span
        # One key of each stretch, so that none is there twice.
        keys = self._session(work).range(0, self.changes, 1, 2)
        keys = keys.selectExpr(f"{first} + id * {step} + pmod(xxhash64(id, {self.ordinal}), {step}) AS id")
        batch = _rows(keys, f"{LATER + self.ordinal * self.changes} + id", self.ordinal).localCheckpoint()
        began = time.perf_counter()
        rows = self._load(batch, "upsert", work, self.rows)
        seconds = time.perf_counter() - began
        if rows.loaded != self.changes:
            raise SystemExit(f"{self.place.kind} took {rows} of {self.changes:,} changes")
        return seconds

    def _load(self, batch: DataFrame, mode: str, work: Work, rows: int) -> Rows:
        self.ordinal += 1
        load = a_load(a_spec(mode), self.ordinal, batch=f"b{self.ordinal}-{rows}", rows=work.rows)
        landed = self.place.open(mode).load(batch.sparkSession, batch, load)
        if landed is None:
            raise SystemExit(f"{self.place.kind} took nothing")
        self.rows = rows
        return landed.rows

    def _session(self, work: Work) -> SparkSession:
        """As a run with so much work has it."""
        return open_session(SparkSpec(), needs=[], log_file=Path("unused"), work=work)


def _rows(keys: DataFrame, seq: str, seed: int) -> DataFrame:
    return keys.selectExpr(*(column.format(seq=seq, seed=seed) for column in COLUMNS))


def measure(kind: str, asked: Asked, scratch: Path, done: Sequence[Told], keep: Callable[[Told], None]) -> None:
    """What is not among `done` yet; each figure goes to `keep` at once."""

    def missing(size: int, where: str) -> int:
        return asked.rounds - sum((d["target"], d["rows"], d["keys"]) == (kind, size, where) for d in done)

    sizes = [size for size in asked.sizes if any(missing(size, where) > 0 for where in WHERE)]
    if not sizes:
        return
    with place(kind, scratch) as found, _spark(kind, scratch, Work(asked.changes, sizes[0])):
        growing = Growing(found, asked.changes)
        for number, size in enumerate(sizes):
            if growing.rows > size:
                raise SystemExit(f"the {kind} table has {growing.rows:,} rows already: begin anew in another scratch")
            growing.fill(size)
            for _ in range(1 if number else asked.warming):
                for where in WHERE:
                    growing.change(where)
            for _ in range(asked.rounds):
                for where in WHERE:
                    if missing(size, where) > 0:
                        told = {"target": kind, "rows": size, "changes": asked.changes, "keys": where}
                        keep({**told, "seconds": growing.change(where)})


@contextmanager
def _spark(kind: str, scratch: Path, work: Work) -> Iterator[None]:
    """Others are opened beside it."""
    spark = open_session(SparkSpec(), needs=[NEEDS[kind]], log_file=scratch / "spark.log", work=work)
    try:
        yield
    finally:
        stop_session(spark)


def table(done: Sequence[Told]) -> list[tuple[str, ...]]:
    """Heads, then a row for each target, place of the keys and size: medians, and ratios to the smallest size."""
    lines: list[tuple[str, ...]] = [("target", "changes", "keys", "rows of the table", "median", "to the smallest")]
    for target, changes, keys in dict.fromkeys((d["target"], d["changes"], d["keys"]) for d in done):
        mine = [d for d in done if (d["target"], d["changes"], d["keys"]) == (target, changes, keys)]
        took = {size: median(d["seconds"] for d in mine if d["rows"] == size) for size in {d["rows"] for d in mine}}
        for size in sorted(took):
            ratio = took[size] / took[min(took)]
            lines.append((target, f"{changes:,}", keys, f"{size:,}", f"{took[size]:.2f} s", f"{ratio:.2f}x"))
    return lines


def show(lines: Sequence[Sequence[str]]) -> None:
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(w) for cell, w in zip(line, wide, strict=True)).rstrip())


@dataclass
class Notes:
    """Figures in a file beside the tables."""

    path: Path
    done: list[Told] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.path.exists():
            self.done = json.loads(self.path.read_text())

    def keep(self, told: Told) -> None:
        self.done.append(told)
        self.path.write_text(json.dumps(self.done))
        print(" ", *(f"{value:.2f} s" if isinstance(value, float) else value for value in told.values()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+", choices=list(NEEDS), default=list(TARGETS))
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--changes", type=int, default=CHANGES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--scratch", type=Path, help="a folder for the tables and figures, to go on after a break")
    parser.add_argument("--keep", action="store_true", help="leave the scratch folder as it is")
    parser.add_argument("--warming", type=int, default=Asked.warming, help="rounds that are not counted")
    options = parser.parse_args()
    asked = Asked(sorted(options.sizes), options.changes, options.rounds, options.warming)
    given = None if options.scratch is None else options.scratch.absolute() / "growth"
    scratch = given or Path(tempfile.mkdtemp(prefix="floodmark-growth-"))
    scratch.mkdir(parents=True, exist_ok=True)
    notes = Notes(scratch / "figures.json")
    for kind in options.targets:
        measure(kind, asked, scratch, notes.done, notes.keep)
    show(table(notes.done))
    if not options.keep:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
