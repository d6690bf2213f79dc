"""Where a pipeline stands, from its state and its history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import takewhile

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
        notes=() if last is None else tuple(_notes(runs)),
    )


def _notes(runs: Sequence[RunRecord]) -> Iterator[str]:
    last = runs[0]
    if last.caveat:
        yield f"{last.guarantee}: {last.caveat}"
    if last.rows_waiting:
        since = list(takewhile(lambda run: run.rows_waiting, runs))[-1].started_at
        rows = "1 row waits" if last.rows_waiting == 1 else f"{last.rows_waiting:,} rows wait"
        yield f"{rows} to be loaded (rows have been waiting since {since:%Y-%m-%d %H:%M:%S})"


def _health(state: PipelineState | None, last: RunRecord | None) -> Health:
    if last is None:
        return "never ran" if state is None else "ok"
    return "ok" if last.success else "stopped" if last.stopped else "failed"


def _lag(runs: Sequence[RunRecord]) -> timedelta | None:
    """How long ago the target was known to hold all that the source showed; where no run that is remembered left it so,
    at least since the oldest of them."""
    done = [run for run in runs if run.success]
    if not done:
        return None
    whole = next((run for run in done if not run.rows_waiting), done[-1])
    return datetime.now(UTC) - whole.started_at
