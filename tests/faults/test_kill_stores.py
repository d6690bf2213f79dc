"""SIGKILL at each step of each store, in a real process, then one ordinary run. SQLite's are in test_kill.py, with all
the other steps."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from tests.faults.test_kill import assert_each_window_once
from tests.lab import Lab, ok
from tests.services import run_faulty

from floodmark.testing.faults import FaultPlan

STEPS = ["store.save:after", "store.save#2:after"]
"""Before a step is behind another one, which no store has a part in: test_kill.py."""
WITH_LEASE = ["store.acquire:after", "store.beat:after"]
QUIET = ["store.release:before", "store.record_run:before"]
"""Reached without a load too, and then without Spark, so they are killed in a run that finds nothing new."""

CASES = [(kind, step) for kind in ("file", "postgresql", "mysql", "s3") for step in STEPS + WITH_LEASE + QUIET]
CASES += [("env", step) for step in STEPS]


@pytest.mark.parametrize(("kind", "step"), CASES)
def test_killed_at_a_step_of_the_store_and_run_again(
    pg_lab: Lab, state_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, kind: str, step: str
) -> None:
    """One load is behind it, so there is a state to lose. Append, which would show a row that came twice."""
    pg_lab.state = state_url(kind)
    first = pg_lab.project(mode="append")
    pg_lab.fill(10)
    ok(first.run("orders"))
    for name, value in first.to_keep().items():
        monkeypatch.setenv(name, value)
    first.close()
    if step not in QUIET:
        pg_lab.fill(10, start=11)
    # The first beat comes after two seconds; the run waits for it before it has started Spark.
    slow = ["source.look:after=delay@60"] if "beat" in step else []
    killed = run_faulty(f"{step}=kill", *slow, "run", "orders", cwd=pg_lab.root)
    assert killed.returncode == -signal.SIGKILL, (pg_lab.root / "faulty.log").read_text()
    project = pg_lab.project(mode="append")
    ok(project.run("orders"))
    pg_lab.assert_equal()
    assert_each_window_once(pg_lab, project.store.get)
    assert ok(project.run("orders")).nothing_new
    project.close()


def test_a_run_that_can_not_be_recorded_ends_as_it_did(sqlite_lab: Lab) -> None:
    """The load has landed: a history that can't be written makes it no failure, and hides none."""
    sqlite_lab.fill(5)
    unrecorded = FaultPlan.of("store.record_run:before=error").registry()
    done = ok(sqlite_lab.project(unrecorded).run("orders"))
    assert done.notices[-1].startswith("this run is not in the history: injected failure")
    sqlite_lab.assert_equal()
    worse = FaultPlan.of("source.look:after=error", "store.record_run:before=error").registry()
    failed = sqlite_lab.project(worse).run("orders")
    assert not failed.success
    assert "source.look" in failed.errors[0]
