"""What is seen of a run while it works: a live display on a terminal, one plain line per event in a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from floodmark.cli.figures import show_count, show_rows, show_seconds, show_span
from floodmark.cli.render_run import headline
from floodmark.model.event import Event, Notice, Planned, RunFinished, StageFinished, StageStarted

if TYPE_CHECKING:
    from floodmark.cli.output import Output
    from floodmark.cli.progress_live import LiveProgress

Clock = Callable[[], float]

OF_NO_SLICE = ("care",)
"""Stages that follow the slices."""
PREPARING = ("check", "look", "spark")
"""Stages that usually take no time: in a log they are worth a line only when they did."""
WORTH_A_LINE = 1.0


def progress_for(out: Output) -> PlainProgress | LiveProgress:
    if not out.is_terminal:
        return PlainProgress(out.line)
    from floodmark.cli.progress_live import LiveProgress  # rich is only worth its import where it is seen

    return LiveProgress(out.redact)


class Pace:
    """How fast slices go and how long the rest will take. Counted from the first load on: the seconds in which Spark
    starts would make the first estimate absurd."""

    def __init__(self, rows: int | None, clock: Clock) -> None:
        self.rows = rows
        self.slices = 1
        self.slice = 1
        self._clock = clock
        self._within = True
        self._began: float | None = None
        self._counted = 0.0
        self._done: dict[str, int] = {}

    def start(self, event: StageStarted) -> None:
        self._within = event.stage not in OF_NO_SLICE
        if self._within:
            self.slice, self.slices = event.slice, max(event.slices, self.slices, event.slice)
        if self._began is None and event.stage not in PREPARING:
            self._began = self._clock()

    def finish(self, event: StageFinished) -> None:
        if event.rows is not None:
            self._done[event.stage] = self._done.get(event.stage, 0) + event.rows
            self._counted = self._clock()

    @property
    def done(self) -> int:
        """Only what is loaded counts, where a load says how much it was."""
        return self._done.get("load", max(self._done.values(), default=0))

    @property
    def rate(self) -> float | None:
        """As it was when rows were last counted: it must not sink while the next slice is on its way."""
        elapsed = 0.0 if self._began is None else self._counted - self._began
        return self.done / elapsed if self.done and elapsed > 0 else None

    @property
    def left(self) -> timedelta | None:
        if self.rows is None or self.rate is None:
            return None
        seconds = (self.rows - self.done) / self.rate - (self._clock() - self._counted)
        return timedelta(seconds=max(0.0, seconds))

    @property
    def place(self) -> str:
        return f"slice {self.slice} of {self.slices}" if self._within and self.slices > 1 else ""

    def text(self) -> str:
        of = "" if self.rows is None else f" of ~{show_count(self.rows)}"
        parts = [f"{show_count(self.done)}{of} rows"]
        if self.rate is not None:
            parts.append(f"{self.rate:,.0f} rows/s")
        if self.left:
            parts.append(f"{show_span(self.left)} left")
        return "  ".join(parts)


class PlainProgress:
    """An EventSink for logs. The closing line is the command's: a run in many parts closes once."""

    def __init__(self, say: Callable[[str], None], clock: Clock = time.monotonic) -> None:
        self.noticed: list[str] = []
        self._say = say
        self._clock = clock
        self._pace = Pace(None, clock)

    def emit(self, event: Event) -> None:
        match event:
            case Planned(plan):
                self._pace = Pace(plan.rows, self._clock)
                if not plan.nothing_new:
                    self._say(headline(plan))
            case StageStarted():
                self._pace.start(event)
                if event.stage not in PREPARING:
                    self._say(_joined(f"  {event.pipeline}", f"{event.stage} started", self._pace.place, event.detail))
            case StageFinished():
                self._pace.finish(event)
                self._say_finished(event)
            case Notice(pipeline, text):
                self.noticed.append(text)
                self._say(f"! {pipeline}  {text}")
            case RunFinished():
                pass

    def close(self) -> None:
        """Nothing is held open."""

    def _say_finished(self, event: StageFinished) -> None:
        """Neutral in words: a stage also finishes when it fails, and the error follows."""
        if event.stage in PREPARING and event.seconds < WORTH_A_LINE:
            return
        place = "" if event.stage in PREPARING else self._pace.place
        rows = "" if event.rows is None else show_rows(event.rows)
        self._say(_joined(f"  {event.pipeline}", event.stage, place, rows, show_seconds(event.seconds)))
        if event.rows is not None and self._pace.slices > 1:
            self._say(_joined(f"  {event.pipeline}", place, self._pace.text()))


def _joined(*parts: str) -> str:
    return "  ".join(part for part in parts if part)
