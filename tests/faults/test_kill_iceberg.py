"""SIGKILL at each step of a real load into an Iceberg table, then one ordinary run: target equals source."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.faults.test_runners import is_stopped, wait_for
from tests.iceberg import IcebergLab, table_at
from tests.lab import ok
from tests.services import run_faulty, start_faulty

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("mode", "step"),
    [
        ("upsert", "target.publish#2:before=kill"),
        ("append", "target.publish:after=kill"),
        ("upsert", "target.load#2:before=kill@1.5"),
        ("upsert", "store.save#4:before=kill"),
    ],
)
def test_killed_while_loading_into_iceberg_and_run_again(
    tmp_path: Path, spark: SparkSession, mode: str, step: str
) -> None:
    """The second and the third slice of an upsert are merged."""
    lab = IcebergLab(tmp_path / "project", "sqlite", "", spark)
    lab.insert(*((i, f"v{i}", f"2026-01-01 10:00:{i:02}") for i in range(1, 31)))
    lab.write(mode=mode, batch_rows=10)
    killed = run_faulty(step, "run", "orders", "--until-complete", cwd=lab.root)
    assert killed.returncode == -signal.SIGKILL, (lab.root / "faulty.log").read_text()
    project = lab.project(mode=mode, batch_rows=10)
    ok(project.run_until_complete("orders"))
    lab.assert_equal()
    assert ok(project.run("orders")).nothing_new
    assert lab.branches() == ["main"]


def test_a_paused_runner_that_wakes_up_can_not_publish(tmp_path: Path, spark: SparkSession) -> None:
    """Stopped when all of its batch is written, without a lease that would tell it: main is the fence."""
    lab = IcebergLab(tmp_path / "project", "sqlite", "", spark, state="env:FLOODMARK_STATE")
    lab.fill(5)
    lab.write(mode="append")
    paused = start_faulty("target.publish:before=stop", "run", "orders", cwd=lab.root)
    try:
        wait_for(lambda: is_stopped(paused.pid))
        assert ok(lab.load().run("orders")).rows.inserted == 5
        snapshot = table_at(Path(lab.table)).current_snapshot()
        os.kill(paused.pid, signal.SIGCONT)
        assert paused.wait(timeout=120) == 1
    finally:
        paused.kill()
        paused.wait()
    assert table_at(Path(lab.table)).current_snapshot() == snapshot
    assert ok(lab.load().run("orders")).nothing_new
    lab.assert_equal()
