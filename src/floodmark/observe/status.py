"""Where a pipeline stands, from its state and its history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from floodmark.model.ledger import PipelineState, gaps
from floodmark.model.outcome import Health, PipelineStatus, RunRecord
from floodmark.model.window import MAIN


def status_of(name: str, state: PipelineState | None, history: Sequence[RunRecord], *, running: bool) -> PipelineStatus:
    """`history` is newest first. Backfills are in it, and say nothing of where the pipeline stands."""
    runs = [run for run in history if run.lane == MAIN]
    last = runs[0] if runs else None
    return PipelineStatus(
        pipeline=name,
        health="running" if running else _health(state, last),
        mark=None if state is None else state.mark,
        lag=_lag(runs),
        last_run=last,
        rows_total=0 if state is None else state.rows_total,
        gaps=None if state is None or state.head is None else len(gaps(state)),
        guarantee="" if last is None else last.guarantee,
        intent=state is not None and state.intent is not None,
        notes=() if last is None or not last.caveat else (f"{last.guarantee}: {last.caveat}",),
    )


def _health(state: PipelineState | None, last: RunRecord | None) -> Health:
    if last is None:
        return "never ran" if state is None else "ok"
    return "ok" if last.success else "failed"


def _lag(runs: Sequence[RunRecord]) -> timedelta | None:
    """How long ago the target was known to hold all that the source showed."""
    done = next((run for run in runs if run.success), None)
    return None if done is None else datetime.now(UTC) - done.started_at
