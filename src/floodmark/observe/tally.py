"""Counts one run as it goes: rows, slices, seconds by stage, notices."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from floodmark.errors import FloodmarkError, Stopped, redact
from floodmark.model.event import Notice, StageFinished, StageStarted
from floodmark.model.ledger import PipelineState
from floodmark.model.outcome import Landed, Rows, RunRecord, RunResult
from floodmark.model.plan import RunPlan
from floodmark.model.position import Position
from floodmark.model.window import MAIN
from floodmark.ports import EventSink


class Tally:
    def __init__(self, pipeline: str, run_id: str, started_at: datetime, sink: EventSink, lane: str = MAIN) -> None:
        self.pipeline = pipeline
        self.run_id = run_id
        self.started_at = started_at
        self.lane = lane
        self.rows = Rows()
        self.slices = 0
        self.complete = True
        self.plan: RunPlan | None = None
        self._sink = sink
        self._version: int | None = None
        self._after: Position | None = None
        self._seconds: dict[str, float] = {}
        self._notices: list[str] = []

    @contextmanager
    def stage(self, name: str, detail: str = "") -> Iterator[None]:
        of = 1 if self.plan is None else self.plan.slices
        number = self.slices + 1
        self._sink.emit(StageStarted(self.pipeline, name, number, of, detail))
        began, rows = time.perf_counter(), self.rows.loaded
        try:
            yield
        finally:
            seconds = time.perf_counter() - began
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds
            loaded = self.rows.loaded - rows
            self._sink.emit(StageFinished(self.pipeline, name, number, seconds, loaded or None))

    def notice(self, text: str) -> None:
        self._notices.append(text)
        self._sink.emit(Notice(self.pipeline, text))

    def landed(self, after: Position | None, landed: Landed | None) -> None:
        """None: the transform left nothing to load."""
        if self.slices == 0:
            self._after = after
        self.slices += 1
        if landed is None:
            self.rows = self.rows.plus(Rows(0, 0, 0, 0))
            return
        self.rows = self.rows.plus(landed.rows)
        self._version = landed.version
        for text in landed.notices:
            if text not in self._notices:
                self.notice(text)

    def result(self, state: PipelineState | None, failure: Exception | None = None) -> RunResult:
        plan = self.plan
        mark = None if state is None else state.mark
        return RunResult(
            pipeline=self.pipeline,
            run_id=self.run_id,
            started_at=self.started_at,
            success=failure is None,
            rows=self.rows,
            lane=self.lane,
            window=self._window(mark),
            mark=mark,
            slices=self.slices,
            complete=self.complete and failure is None,
            nothing_new=failure is None and self.slices == 0,
            rows_waiting=0 if plan is None else plan.rows_waiting,
            seconds=dict(self._seconds),
            errors=() if failure is None else (_words(failure),),
            notices=tuple(self._notices),
            guarantee="" if plan is None else str(plan.guarantee),
            caveat="" if plan is None else plan.guarantee.caveat,
            version=self._version,
            metadata={} if state is None else state.metadata,
            failure=failure,
        )

    def _window(self, mark: Position | None) -> tuple[Position | None, Position | None]:
        if self.lane != MAIN:
            return (None, None) if self.plan is None else (self.plan.after, self.plan.until)
        return self._after if self.slices else mark, mark


def to_record(result: RunResult, secrets: tuple[str, ...]) -> RunRecord:
    return RunRecord(
        run_id=result.run_id,
        pipeline=result.pipeline,
        lane=result.lane,
        started_at=result.started_at,
        seconds=result.total_seconds,
        success=result.success,
        stopped=isinstance(result.failure, Stopped),
        nothing_new=result.nothing_new,
        rows_read=result.rows.read,
        rows_inserted=result.rows.inserted,
        rows_updated=result.rows.updated,
        rows_deleted=result.rows.deleted,
        rows_waiting=result.rows_waiting,
        slices=result.slices,
        after=result.window[0],
        until=result.window[1],
        mark=result.mark,
        error=redact(result.errors[0], secrets) if result.errors else None,
        version=result.version,
        guarantee=result.guarantee,
        caveat=redact(result.caveat, secrets),
        stages=dict(result.seconds),
    )


def _words(failure: Exception) -> str:
    return failure.message if isinstance(failure, FloodmarkError) else f"{type(failure).__name__}: {failure}"
