"""The live display: finished stages stay as lines, the running one moves below them."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table as Grid
from rich.text import Text

from floodmark.cli.figures import show_rows, show_seconds
from floodmark.cli.progress import PREPARING, WORTH_A_LINE, Clock, Pace
from floodmark.cli.render_run import headline
from floodmark.model.event import Event, Notice, Planned, RunFinished, StageFinished, StageStarted

BAR = 20
STAGE = 7
"""Width of the stages' names."""


class LiveProgress:
    """An EventSink for a terminal. The closing line is the command's: a run in many parts closes once."""

    def __init__(
        self, redact: Callable[[str], str], console: Console | None = None, clock: Clock = time.monotonic
    ) -> None:
        self.noticed: list[str] = []
        self._redact = redact
        self._console = console or Console(highlight=False, markup=False, soft_wrap=True)
        self._clock = clock
        self._live: Live | None = None
        self._pace = Pace(None, clock)
        self._running: StageStarted | None = None
        self._since = 0.0
        self._spinner = Spinner("dots", style="cyan")

    def emit(self, event: Event) -> None:
        match event:
            case Planned(plan):
                self.close()
                self._pace = Pace(plan.rows, self._clock)
                if not plan.nothing_new:
                    self._print(Text(self._redact(headline(plan)), "bold"))
            case StageStarted():
                self._pace.start(event)
                self._running, self._since = event, self._clock()
                self._show()
            case StageFinished():
                self._pace.finish(event)
                detail = self._running.detail if self._running and self._running.stage == event.stage else ""
                self._running = None
                if event.seconds >= WORTH_A_LINE if event.stage in PREPARING else self._pace.slices == 1:
                    self._print(self._finished(event, detail))
            case Notice(pipeline, text):
                self.noticed.append(text)
                self._print(Text.assemble(("! ", "bold yellow"), self._redact(f"{pipeline}  {text}")))
            case RunFinished():
                self.close()

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        self._running = None

    def frame(self) -> Group:
        """What moves: the whole of a load in slices, and the stage at work."""
        lines: list[Text | Grid] = []
        if self._pace.slices > 1:
            share = self._pace.done / self._pace.rows if self._pace.rows else (self._pace.slice - 1) / self._pace.slices
            lines.append(
                Text.assemble(f"  {self._pace.place}  ", *_bar(share), f"  {self._pace.text()}", overflow="fold")
            )
        if self._running is not None:
            took = show_seconds(self._clock() - self._since)
            words = "  ".join(filter(None, (self._redact(self._running.detail), took)))
            grid = Grid.grid(padding=(0, 1))
            grid.add_row(Text(f"  {self._running.stage:<{STAGE}}"), self._spinner, Text(words, overflow="fold"))
            lines.append(grid)
        return Group(*lines)

    def _finished(self, event: StageFinished, detail: str) -> Text:
        rows = "" if event.rows is None else show_rows(event.rows)
        words = "  ".join(filter(None, (rows, self._redact(detail), show_seconds(event.seconds))))
        # A stage also finishes when it fails; then it has no rows, and its bar stays empty.
        bar = ((" " * BAR, ""),) if event.stage in PREPARING else _bar(0 if event.rows is None else 1)
        return Text.assemble(f"  {event.stage:<{STAGE}} ", *bar, f"  {words}")

    def _show(self) -> None:
        if self._live is None:
            self._live = Live(get_renderable=self.frame, console=self._console, refresh_per_second=8, transient=True)
            self._live.start()

    def _print(self, text: Text) -> None:
        self._console.print(text)


def _bar(share: float) -> tuple[tuple[str, str], tuple[str, str]]:
    filled = max(0, min(BAR, round(share * BAR)))
    return ("█" * filled, "cyan"), ("░" * (BAR - filled), "dim")
