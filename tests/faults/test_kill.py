"""SIGKILL at each named step of a real process, then one ordinary run: target equals source, each window once."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lab import Lab, ok
from tests.services import run_faulty

BEFORE_SPARK = [
    "store.acquire:after",
    "store.get:after",
    "target.inspect:after",
    "source.describe:after",
    "source.look:after",
    "source.next_cut:after",
    "store.save:before",
    "store.save:after",
]
WITH_SPARK = [
    "source.snapshot:after",
    "source.read:after",
    "target.load:before=kill@1.5",
    "target.load:after",
    "target.load#2:after",
    "store.save#2:after",
    "store.release:before",
    "store.record_run:before",
]
"""Between a step and the next nothing happens: killed behind the one is killed before the other."""


AROUND_THE_COMMIT = [step for step in WITH_SPARK if "load" in step or "save#2" in step]
STEPS = [("append", step) for step in BEFORE_SPARK + WITH_SPARK] + [("upsert", step) for step in AROUND_THE_COMMIT]
"""Elsewhere both modes go the same way. `make soak` kills both at any step."""


def fault_of(step: str) -> str:
    return step if "=" in step else f"{step}=kill"


@pytest.mark.parametrize(("mode", "step"), STEPS)
def test_killed_at_a_step_and_run_again(pg_lab: Lab, mode: str, step: str) -> None:
    """A first load of three slices; the upsert table has rows at and above the mark as well."""
    pg_lab.series(30, "2026-01-01 10:00:00", "1 second")
    pg_lab.write(mode=mode, batch_rows=10)
    assert_killed_and_mended(pg_lab, mode, step)


@pytest.mark.parametrize(
    ("mode", "step"),
    [
        ("append", "source.next_cut:after"),
        ("upsert", "source.read:after"),
        ("append", "target.load:before=kill@1.5"),
        ("append", "target.load#2:after"),
        ("upsert", "target.load:after"),
    ],
)
def test_killed_while_reading_from_mariadb_and_run_again(my_lab: Lab, mode: str, step: str) -> None:
    my_lab.series(30, "2026-01-01 10:00:00", "1 second")
    my_lab.write(mode=mode, batch_rows=10)
    assert_killed_and_mended(my_lab, mode, step)


def assert_killed_and_mended(lab: Lab, mode: str, step: str) -> None:
    killed = run_faulty(fault_of(step), "run", "orders", cwd=lab.root)
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    project = lab.project(mode=mode, batch_rows=10)
    ok(project.run("orders"))
    lab.assert_equal()
    assert_each_window_once(lab, project.store.get)
    assert ok(project.run("orders")).nothing_new


def test_a_load_whose_outcome_nobody_knows_is_found_out_by_the_next_run(pg_lab: Lab) -> None:
    """The commit landed, the answer got lost: the run fails loudly and the next one does not load it again."""
    from floodmark.testing.faults import FaultPlan

    pg_lab.fill(5)
    landed = FaultPlan.of("target.load:after=unknown").registry()
    result = pg_lab.project(landed, mode="append").run("orders")
    assert not result.success
    assert "nobody knows" in result.errors[0]
    assert len(pg_lab.target_rows()) == 5
    project = pg_lab.project(mode="append")
    again = ok(project.run("orders"))
    assert again.nothing_new
    assert "the last run was cut off after its commit: its window counts as loaded" in again.notices
    pg_lab.fill(5, start=6)
    lost = FaultPlan.of("target.load:before=unknown").registry()
    assert not pg_lab.project(lost, mode="append").run("orders").success
    assert ok(project.run("orders")).rows.inserted == 5
    pg_lab.assert_equal()


@pytest.mark.parametrize(
    "fault", ["source.read:after", "target.load:before", "store.save#2:before", "source.look:after"]
)
def test_an_error_at_a_step_loses_nothing(pg_lab: Lab, fault: str) -> None:
    from floodmark.testing.faults import FaultPlan

    pg_lab.fill(5)
    faults = FaultPlan.of(f"{fault}=error").registry()
    result = pg_lab.project(faults, mode="append").run("orders")
    assert not result.success
    assert "injected failure" in result.errors[0]
    ok(pg_lab.project(mode="append").run("orders"))
    pg_lab.assert_equal()


def assert_each_window_once(lab: Lab, get: Callable[[str], object]) -> None:
    """In the ledger as in the target's history."""
    state = get("orders")
    windows = [w for w in state.windows if w.state == "committed" and w.lane == "main"]  # type: ignore[attr-defined]
    assert len({w.after for w in windows}) == len(windows)
    assert len({w.batch for w in windows}) == len(windows)
    batches = [h["batch"] for h in heads(lab)]
    assert len(set(batches)) == len(batches)


def heads(lab: Lab) -> list[dict[str, object]]:
    found = []
    for commit in sorted(Path(lab.table, "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            metadata = json.loads(line).get("commitInfo", {}).get("userMetadata")
            if metadata:
                found.append(json.loads(metadata))
    return found
