"""A race: writers on a real database, the pipeline running again and again, and at the end every row compared."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

from tests.lab import Kind, Lab, ok
from tests.race_databases import TABLES, MariadbWriter, PostgresWriter
from tests.race_writers import Stage, Writer
from tests.storm_ends import End

from floodmark.model.outcome import RunResult
from floodmark.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK = ""
"""As users have it: the source is asked who may still write."""
NO_LOOK = ", fence: off, delay: 0s"
"""Only the highest visible value counts, as in a pipeline written by hand."""

By = Literal["timestamp", "sequence"]
Mode = Literal["upsert", "append"]
WORLDS: tuple[tuple[By, Mode], ...] = tuple(product(("timestamp", "sequence"), ("upsert", "append")))
COLUMN = {"timestamp": "updated_at", "sequence": "id"}
WRITERS: dict[str, Callable[[int, str, Stage], Writer]] = {"postgres": PostgresWriter, "mariadb": MariadbWriter}
CLOCK = {"postgres": "SELECT clock_timestamp()", "mariadb": "SELECT utc_timestamp(6)"}
PREPARED = {
    "postgres": "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()",
    "mariadb": "XA RECOVER",
}
FEWEST_RUNS = 3
"""Among the writers, on however slow a machine."""
MOST_RUNS_AFTER = 6
"""A source that has gone quiet is proven by one look, or by the one after it."""


class RaceLab(Lab):
    """Its table fills in ids and times itself: values come from the database, as the guarantee wants it."""

    end: End

    @classmethod
    def into(cls, end: End, root: Path, kind: Kind, url: str, spark: SparkSession, **more: Any) -> RaceLab:
        lab = cls(root, kind, url, spark, lake=end.connection, **more)
        lab.end = end
        return lab

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        for statement in TABLES[self.kind]:
            self.execute(statement)

    def declare(self, by: By, mode: Mode, option: str, batch_rows: int = 100_000) -> None:
        change = f"{{by: {by}, column: {COLUMN[by]}{option}}}"
        self.write(mode=mode, batch_rows=batch_rows, change=change)

    def target_rows(self) -> list[tuple[Any, ...]]:
        assert self.spark is not None
        return self.end.rows(self.spark)

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """In a session of its own."""
        writer = WRITERS[self.kind](0, self.url, Stage(0, pause=0))
        writer.connect()
        try:
            return writer.sql(statement)
        finally:
            writer.close()

    def clock(self) -> datetime:
        moment: datetime = self.ask(CLOCK[self.kind])[0][0]
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Difference:
    """Row by row; each id counts once in each."""

    missing: int
    stale: int
    doubled: int
    ghosts: int
    """In the target, though no transaction committed them."""

    @property
    def none(self) -> bool:
        return (self.missing, self.stale, self.doubled, self.ghosts) == (0, 0, 0, 0)


def compare(source: Sequence[tuple[Any, ...]], target: Sequence[tuple[Any, ...]]) -> Difference:
    wanted = {row[0]: row for row in source}
    assert len(wanted) == len(source), "the source itself has an id twice"
    copies = Counter(row[0] for row in target)
    found = {row[0]: row for row in target}
    return Difference(
        missing=len(wanted.keys() - found.keys()),
        stale=sum(1 for key in wanted.keys() & found.keys() if wanted[key] != found[key]),
        doubled=sum(1 for count in copies.values() if count > 1),
        ghosts=len(found.keys() - wanted.keys()),
    )


@dataclass(frozen=True)
class Outcome:
    written: int
    conflicts: int
    difference: Difference
    runs: int
    lags: tuple[float, ...]
    """Seconds that the mark stood behind the source's clock, after each run among writers (timestamps only)."""

    @property
    def lost(self) -> int:
        return self.difference.missing + self.difference.stale

    @property
    def lag(self) -> tuple[float, float] | None:
        """Median and worst."""
        return (median(self.lags), max(self.lags)) if self.lags else None


@dataclass
class Race:
    lab: RaceLab
    by: By
    mode: Mode
    seed: int
    option: str = LOOK
    seconds: float = 4
    pause: float = 1.5
    writers: int = 6
    hold: bool = False
    lags: list[float] = field(default_factory=list)
    runs: int = 0

    def run(self) -> Outcome:
        print(f"race {self.lab.kind} {self.by} {self.mode}{self.option} with seed {self.seed}", flush=True)
        self.lab.declare(self.by, self.mode, self.option)
        project = self.lab.load()
        with self.writing() as (stage, writers):
            end = time.monotonic() + self.seconds
            while time.monotonic() < end or self.runs < FEWEST_RUNS or (self.hold and not stage.held.is_set()):
                self._observe(ok(project.run("orders")))
                stage.run_ended()
                raise_failures(writers)
        self.settle(project)
        project.close()
        found = compare(self.lab.source_rows(), self.lab.target_rows())
        written, conflicts = sum(w.written for w in writers), sum(w.conflicts for w in writers)
        return Outcome(written, conflicts, found, self.runs, tuple(self.lags))

    @contextmanager
    def writing(self) -> Iterator[tuple[Stage, list[Writer]]]:
        """Writers at work for the block; after it, all of their transactions have ended."""
        updates = (self.by, self.mode) == ("timestamp", "upsert")
        # The look at a sequence waits for who has written, not for who has only drawn a number.
        early = self.by == "timestamp"
        stage = Stage(
            self.seed,
            pause=self.pause,
            hold=self.hold,
            updates=updates,
            early_ids=early,
        )
        writers: list[Writer] = [WRITERS[self.lab.kind](n, self.lab.url, stage) for n in range(self.writers)]
        for writer in writers:
            writer.start()
        try:
            yield stage, writers
        finally:
            stage.end()
            for writer in writers:
                writer.join()
        raise_failures(writers)
        assert not self.lab.ask(PREPARED[self.lab.kind])

    def _observe(self, result: RunResult) -> None:
        self.runs += 1
        if self.by == "timestamp" and result.mark is not None:
            mark = result.mark.values[0]
            assert isinstance(mark, datetime)
            self.lags.append((self.lab.clock() - mark).total_seconds())

    def settle(self, project: Project) -> None:
        """Runs until nothing is new and nothing waits."""
        for _ in range(MOST_RUNS_AFTER):
            result = ok(project.run("orders"))
            self.runs += 1
            if result.nothing_new and not result.rows_waiting:
                return
        raise AssertionError(f"{result.rows_waiting} rows still wait, though nobody writes any more")


def raise_failures(writers: Sequence[Writer]) -> None:
    for writer in writers:
        if writer.failure is not None:
            raise AssertionError(f"{writer.name} failed") from writer.failure
