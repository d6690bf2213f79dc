"""Ctrl-C and SIGTERM: the work runs in a thread of its own, so that a signal can ask it to end instead of tearing it
apart in the middle of a call to Spark or to a database."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Generic, TypeVar

import typer

from floodmark.errors import ConfigError

if TYPE_CHECKING:
    from floodmark.cli.session import Call
    from floodmark.project import Project

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENCE = 20.0
"""Seconds for a slice to end by itself; a container usually has 30, and who gives it more can say so. Then its Spark
is ended, and with it the slice."""
PATIENCE_VARIABLE = "FLOODMARK_STOP_PATIENCE"
POLL = 0.2


def stoppable(call: Call, project: Project, work: Callable[[], T]) -> T:
    """Raises typer.Exit(130 or 143) once the work has ended, when a signal has asked it to. Raises ConfigError."""
    patience = _patience()
    if threading.current_thread() is not threading.main_thread():
        return work()  # signals come to the main thread only
    worker = _Worker(work)
    with _heard() as heard:
        worker.start()
        while worker.is_alive():
            worker.join(POLL)
            if heard:
                _wait_for_end(call, project, worker, heard, patience)
    if heard:
        if worker.error is not None:
            call.tell(worker.error)
        raise typer.Exit(128 + heard[0])
    return worker.result()


class _Worker(threading.Thread, Generic[T]):
    def __init__(self, work: Callable[[], T]) -> None:
        super().__init__(name="floodmark run", daemon=True)
        self._work = work
        self._results: list[T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self._results.append(self._work())
        except BaseException as error:
            self.error = error

    def result(self) -> T:
        if self.error is not None:
            raise self.error
        return self._results[0]


@contextmanager
def _heard() -> Iterator[list[int]]:
    """The signals that have come, in their order."""
    numbers: list[int] = []

    def hear(number: int, _frame: FrameType | None) -> None:
        numbers.append(number)

    before = {number: signal.signal(number, hear) for number in SIGNALS}
    try:
        yield numbers
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _patience() -> float:
    told = os.environ.get(PATIENCE_VARIABLE, "").strip()
    try:
        seconds = float(told) if told else PATIENCE
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ConfigError(
            f"{PATIENCE_VARIABLE} is {told!r}, which is no number of seconds",
            value=told,
            hint=f"give seconds, such as {PATIENCE_VARIABLE}=60, or leave it out for {PATIENCE:.0f}",
        )
    return seconds


def _wait_for_end(call: Call, project: Project, worker: _Worker[T], heard: list[int], patience: float) -> None:
    call.out.error(["! stopping: the slice under way is given up (once more ends it at once)"])
    deadline = time.monotonic() + patience
    while worker.is_alive() and len(heard) == 1 and time.monotonic() < deadline:
        project.stop()  # again and again: between two jobs of Spark there is nothing to cancel
        worker.join(POLL)
    if not worker.is_alive():
        return
    project.abort()
    worker.join(max(patience, PATIENCE) / 4)
    if worker.is_alive():
        # Stuck in a call that nothing can end: the lease is left to expire, which is what it is for.
        call.out.error(["! it does not end: leaving it behind"])
        os._exit(128 + heard[0])
