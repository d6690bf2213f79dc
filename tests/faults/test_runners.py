"""Two runners on one table: one works, the other is told who. A runner that was paused can't commit any more."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.lab import Lab, ok
from tests.services import run_cli, start_faulty

from floodmark.ports import SupportsLeases
from floodmark.project import Project


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition was not met in time"
        time.sleep(0.05)


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def is_held(project: Project, lab: Lab) -> bool:
    assert isinstance(project.store, SupportsLeases)
    return project.store.holder(f"delta:{lab.table}") is not None


@pytest.mark.parametrize("kind", ["sqlite", "file", "postgresql", "mysql", "s3"])
def test_the_second_runner_exits_3_and_says_who_holds_it(
    pg_lab: Lab, state_url: Callable[[str], str], kind: str
) -> None:
    pg_lab.state = state_url(kind)
    pg_lab.fill(5)
    project = pg_lab.project()
    holder = start_faulty("source.look:after=delay@60", "run", "orders", cwd=pg_lab.root)
    try:
        wait_for(lambda: is_held(project, pg_lab))
        second = run_cli("run", "orders", cwd=pg_lab.root, code=3)
        assert f"pid {holder.pid}" in second.stderr
        assert "running already" in second.stderr
    finally:
        holder.kill()
        holder.wait()
    ok(project.run("orders"))
    pg_lab.assert_equal()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mysql", "s3"])
def test_a_paused_runner_that_wakes_up_can_not_commit(pg_lab: Lab, state_url: Callable[[str], str], kind: str) -> None:
    """Stopped right before its load; taken over after the TTL; woken up again."""
    pg_lab.state = state_url(kind)
    pg_lab.fill(5)
    project = pg_lab.project(mode="append")
    pg_lab.append_line("lease_ttl: 3s")
    paused = start_faulty("target.load:before=stop", "run", "orders", cwd=pg_lab.root)
    try:
        wait_for(lambda: is_stopped(paused.pid))
        taker = pg_lab.load()
        assert ok(taker.run("orders")).rows.inserted == 5
        version, state = DeltaTable(pg_lab.table).version(), taker.store.get("orders")
        os.kill(paused.pid, signal.SIGCONT)
        assert paused.wait(timeout=120) == 3
    finally:
        paused.kill()
        paused.wait()
    assert "lease" in (pg_lab.root / "faulty.log").read_text()
    assert DeltaTable(pg_lab.table).version() == version
    assert project.store.get("orders") == state
    pg_lab.assert_equal()


def test_without_a_lease_a_paused_runner_that_wakes_up_can_not_commit_either(
    pg_lab: Lab, state_url: Callable[[str], str]
) -> None:
    """State in a variable keeps nobody out: it is the target's own commit that lets only one of two land."""
    pg_lab.state = state_url("env")
    pg_lab.fill(5)
    pg_lab.write(mode="append")
    paused = start_faulty("target.load:before=stop", "run", "orders", cwd=pg_lab.root)
    try:
        wait_for(lambda: is_stopped(paused.pid))
        assert ok(pg_lab.load().run("orders")).rows.inserted == 5
        version = DeltaTable(pg_lab.table).version()
        os.kill(paused.pid, signal.SIGCONT)
        assert paused.wait(timeout=120) == 1
    finally:
        paused.kill()
        paused.wait()
    assert DeltaTable(pg_lab.table).version() == version
    assert ok(pg_lab.load().run("orders")).nothing_new
    pg_lab.assert_equal()
