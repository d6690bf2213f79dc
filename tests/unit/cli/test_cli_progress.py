from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console

from floodmark.cli.progress import PlainProgress
from floodmark.cli.progress_live import LiveProgress
from floodmark.model.event import Event, Notice, Planned, RunFinished, StageFinished, StageStarted

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Fakes


class Ticking:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def one_slice(fakes: Fakes) -> list[Event]:
    return [
        StageStarted("orders", "look", 1, 1),
        StageFinished("orders", "look", 1, 0.04),
        Planned(fakes.plan()),
        StageStarted("orders", "spark", 1, 1),
        StageFinished("orders", "spark", 1, 7.4),
        StageStarted("orders", "read", 1, 1),
        StageFinished("orders", "read", 1, 0.4, 9_986),
        StageStarted("orders", "load", 1, 1, "upsert into lake/orders"),
        StageFinished("orders", "load", 1, 1.9),
        Notice("orders", "the clock was set back"),
        RunFinished(fakes.result()),
    ]


def test_a_log_gets_one_plain_line_per_event(fakes: Fakes) -> None:
    lines: list[str] = []
    sink = PlainProgress(lines.append)
    for event in one_slice(fakes):
        sink.emit(event)
    assert lines == [
        "orders  2026-11-14 09:12:03 → 2026-11-15 10:00:41  ~9,986 rows  fenced",
        "  orders  spark  7.4 s",
        "  orders  read started",
        "  orders  read  9,986 rows  0.4 s",
        "  orders  load started  upsert into lake/orders",
        "  orders  load  1.9 s",
        "! orders  the clock was set back",
    ]
    assert sink.noticed == ["the clock was set back"]


def test_care_is_of_no_slice(fakes: Fakes) -> None:
    lines: list[str] = []
    sink = PlainProgress(lines.append)
    for event in one_slice(fakes)[:-2]:
        sink.emit(event)
    lines.clear()
    sink.emit(StageStarted("orders", "care", 2, 1, "compaction"))
    sink.emit(StageFinished("orders", "care", 2, 1.2))
    assert lines == ["  orders  care started  compaction", "  orders  care  1.2 s"]


def test_a_quiet_plan_says_nothing(fakes: Fakes) -> None:
    lines: list[str] = []
    PlainProgress(lines.append).emit(Planned(fakes.plan(nothing_new=True)))
    assert lines == []


def test_a_first_load_shows_slice_pace_and_time_left(fakes: Fakes) -> None:
    lines: list[str] = []
    clock = Ticking()
    sink = PlainProgress(lines.append, clock)
    sink.emit(Planned(fakes.plan(first=True, rows=160_000, slices=4)))
    sink.emit(StageStarted("orders", "spark", 1, 4))
    clock.now += 9  # not part of the pace
    sink.emit(StageFinished("orders", "spark", 1, 9.0))
    sink.emit(StageStarted("orders", "load", 1, 4))
    clock.now += 2
    sink.emit(StageFinished("orders", "load", 1, 2.0, 40_000))
    assert lines[1:] == [
        "  orders  spark  9.0 s",
        "  orders  load started  slice 1 of 4",
        "  orders  load  slice 1 of 4  40,000 rows  2.0 s",
        "  orders  slice 1 of 4  40,000 of ~160,000 rows  20,000 rows/s  6s left",
    ]


def live(clock: Ticking, width: int = 100) -> tuple[LiveProgress, StringIO]:
    file = StringIO()
    console = Console(file=file, force_terminal=True, color_system=None, width=width, highlight=False, markup=False)
    return LiveProgress(lambda text: text.replace("hunter2", "***"), console, clock), file


def test_finished_stages_stay_on_the_terminal(fakes: Fakes) -> None:
    sink, file = live(Ticking())
    for event in one_slice(fakes):
        sink.emit(event)
    sink.close()
    text = file.getvalue()
    assert "  read    ████████████████████  9,986 rows  0.4 s" in text
    assert "  load    ░░░░░░░░░░░░░░░░░░░░  upsert into lake/orders  1.9 s" in text
    assert "  spark                         7.4 s" in text
    assert "  look" not in text.split("\n")[0]
    assert "! orders  the clock was set back" in text
    assert sink.noticed == ["the clock was set back"]


def test_the_frame_shows_slice_bar_and_running_stage(fakes: Fakes) -> None:
    clock = Ticking()
    sink, file = live(clock)
    sink.emit(Planned(fakes.plan(first=True, rows=160_000, slices=4)))
    sink.emit(StageStarted("orders", "load", 1, 4, "into hunter2"))
    clock.now += 2
    sink.emit(StageFinished("orders", "load", 1, 2.0, 80_000))
    sink.emit(StageStarted("orders", "load", 2, 4, "into hunter2"))
    clock.now += 1  # the estimate counts down while the rate stands
    console = Console(file=StringIO(), width=100)
    with console.capture() as capture:
        console.print(sink.frame())
    sink.close()
    frame = capture.get()
    assert "slice 2 of 4  ██████████░░░░░░░░░░  80,000 of ~160,000 rows  40,000 rows/s  1s left" in frame
    assert "into ***  1.0 s" in frame
    assert "hunter2" not in file.getvalue()


def test_a_narrow_terminal_keeps_every_number(fakes: Fakes) -> None:
    sink, _ = live(Ticking(), width=40)
    sink.emit(Planned(fakes.plan(first=True, rows=160_000, slices=4)))
    sink.emit(StageStarted("orders", "load", 1, 4))
    console = Console(file=StringIO(), width=40)
    with console.capture() as capture:
        console.print(sink.frame())
    sink.close()
    assert "~160,000" in "".join(capture.get().split("\n"))
