"""Where a pipeline stands: rows that wait are said, and the lag grows until they are loaded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from floodmark.model.ledger import PipelineState
from floodmark.model.outcome import PipelineStatus, RunRecord
from floodmark.observe.status import status_of


def ago(minutes: int) -> datetime:
    """Asked anew each time: the status compares with the clock, however long ago this file was read."""
    return datetime.now(UTC) - timedelta(minutes=minutes)


def run(minutes: int, *, waiting: int = 0, success: bool = True) -> RunRecord:
    """So long ago."""
    return RunRecord(
        run_id=str(minutes), pipeline="p", started_at=ago(minutes), seconds=1, success=success, rows_waiting=waiting
    )


def status(*runs: RunRecord) -> PipelineStatus:
    return status_of("p", PipelineState(pipeline="p"), runs, running=False)


def lag(*runs: RunRecord) -> int:
    found = status(*runs).lag
    assert found is not None
    return round(found.total_seconds() / 60)


def test_the_lag_is_that_of_the_last_run_that_left_nothing_waiting() -> None:
    assert lag(run(1), run(5)) == 1
    assert lag(run(1, success=False), run(5)) == 5
    assert lag(run(1, waiting=2), run(5, waiting=1), run(9)) == 9
    assert lag(run(1, waiting=2), run(5, waiting=1)) == 5, "at least"
    assert status(run(1, success=False)).lag is None


def test_rows_that_wait_are_told_with_the_time_since_when() -> None:
    assert status(run(1), run(5, waiting=3)).notes == ()
    oldest = run(5, waiting=1)
    (note,) = status(run(1, waiting=2000), oldest, run(9)).notes
    since = f"{oldest.started_at:%Y-%m-%d %H:%M:%S}"
    assert note == f"2,000 rows wait to be loaded (rows have been waiting since {since})"


def test_a_run_that_somebody_stopped_has_not_failed() -> None:
    asked = run(1, success=False).model_copy(update={"stopped": True})
    assert status(asked, run(5)).health == "stopped"
    assert status(run(1, success=False), asked).health == "failed"
