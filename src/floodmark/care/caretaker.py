"""One round of table care at the end of a run: under its lease, after its ledger is saved. It never changes how the run
ends: what goes wrong is told, and done by a later one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from floodmark.care.due import MANY, due, head_in_danger
from floodmark.errors import LeaseError
from floodmark.javawords import first_line
from floodmark.model.care import Care, CareDone, Step
from floodmark.model.ledger import PipelineState
from floodmark.model.outcome import TargetState
from floodmark.model.spec import PipelineSpec
from floodmark.observe.tally import Tally
from floodmark.ports import Maintains, Target
from floodmark.stop import Stop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = {"keep": "keeping the head", "compact": "compaction", "vacuum": "vacuum"}


@dataclass(frozen=True)
class Caretaker:
    spec: PipelineSpec
    target: Target
    tally: Tally
    stop: Stop
    now: Callable[[], datetime]
    still_ours: Callable[[], None]
    """Raises LeaseLost once somebody else has taken over."""

    def look_after(self, seen: TargetState, state: PipelineState, spark: Callable[[], SparkSession]) -> None:
        """`seen` is the table before the run's loads. Spark is there if anything was loaded."""
        target = self.target
        if not isinstance(target, Maintains) or state.head is None or self.stop.asked:
            return
        now = self.now()
        if self.tally.slices:
            steps = due(self.spec.target.maintenance, seen, now)
        else:
            steps = ("keep",) if head_in_danger(seen, now) else ()
        for step in steps:
            try:
                if step == "compact" and target.small_files() < MANY:
                    continue
                done = self._take(target, Care(step, state, now), spark)
            except Exception as error:
                self.tally.notice(_left(step, error, stopped=self.stop.asked))
                if self.stop.asked or isinstance(error, LeaseError):
                    return
            else:
                self._tell(step, done)

    def _take(self, target: Maintains, wanted: Care, spark: Callable[[], SparkSession]) -> CareDone:
        self.still_ours()
        session = spark()
        with self.tally.stage("care", NAMES[wanted.step]), self.stop.cutting_short(session.interruptAll):
            return target.care(session, wanted)

    def _tell(self, step: Step, done: CareDone) -> None:
        if step == "compact" and done.removed:
            self.tally.notice(f"compacted: {done.removed} files became {done.added}")
        if step == "vacuum" and done.removed:
            self.tally.notice(f"vacuumed: {done.removed} files that no kept version needs were removed")


def _left(step: Step, error: Exception, *, stopped: bool) -> str:
    why = "stopped" if stopped else first_line(error)
    return f"{NAMES[step]} is left to a later run: {why}"
