"""The clock of the runner's machine a day ahead or behind: only the source's clock and the store's counters decide."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from tests.faults.test_kill import assert_each_window_once
from tests.faults.test_runners import is_held, is_stopped, wait_for
from tests.lab import Lab, ok

from floodmark.ports import SupportsLeases
from floodmark.project import Project

BY_TIME = "{by: timestamp, column: updated_at, delay: 0s}"
NEW_ROWS = "INSERT INTO orders SELECT i, 'v' || i, clock_timestamp() FROM generate_series({}, {}) i"
CHANGED = "UPDATE orders SET val = val || '*', updated_at = clock_timestamp() WHERE id % 3 = 0"
OLD_ENOUGH = "SELECT count(*) FROM orders WHERE updated_at > clock_timestamp() - interval '1.5 seconds'"


def start_at(offset: str, module: str, *arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """A process that believes in another day; how long things take it still sees as they are, as on a machine whose
    clock was set wrong."""
    command = ["faketime", "-m", "-f", offset, sys.executable, "-m", module, *arguments]
    path = os.pathsep.join(filter(None, [str(Path(__file__).with_name("another_day")), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "COLUMNS": "160", "NO_COLOR": "1", "DONT_FAKE_MONOTONIC": "1", "PYTHONPATH": path}
    with (cwd / "clock.log").open("a") as log:
        return subprocess.Popen(command, cwd=cwd, env=env, stdout=log, stderr=log, text=True)


def run_at(offset: str, *arguments: str, cwd: Path, code: int = 0) -> str:
    """What it said."""
    log = cwd / "clock.log"
    before = len(log.read_text()) if log.exists() else 0
    ended = start_at(offset, "floodmark.cli.main", *arguments, cwd=cwd).wait(timeout=300)
    text = log.read_text()[before:]
    assert ended == code, text
    return text


def held_by(project: Project, lab: Lab) -> int:
    assert isinstance(project.store, SupportsLeases)
    lease = project.store.holder(f"delta:{lab.table}")
    assert lease is not None
    return lease.owner.pid


def write_rows(lab: Lab, first: int, last: int, *, changes: bool) -> None:
    """By the database's clock; then until the newest is old enough to be proven, by the same clock."""
    lab.execute(NEW_ROWS.format(first, last))
    if changes:
        lab.execute(CHANGED)
    with psycopg.connect(lab.url, autocommit=True) as connection:
        wait_for(lambda: connection.execute(OLD_ENOUGH).fetchall() == [(0,)])


def test_the_clock_is_really_another(tmp_path: Path) -> None:
    """Or the tests below would prove nothing."""
    script = tmp_path / "clock_of_this.py"
    script.write_text("import datetime\nprint(datetime.datetime.now(datetime.UTC).date())\n")
    seen = []
    for offset in ("-1d", "+0d", "+1d"):
        done = subprocess.run(
            ["faketime", "-m", "-f", offset, sys.executable, script], capture_output=True, text=True, check=True
        )
        seen.append(done.stdout.strip())
    assert seen == sorted(set(seen))


@pytest.mark.parametrize("mode", ["append"])
def test_a_day_ahead_and_a_day_behind_lose_and_double_nothing(pg_lab: Lab, mode: str) -> None:
    changes = mode == "upsert"
    pg_lab.write(mode=mode, change=BY_TIME)
    write_rows(pg_lab, 1, 10, changes=False)
    run_at("+1d", "run", "orders", cwd=pg_lab.root)
    pg_lab.assert_equal()
    write_rows(pg_lab, 11, 20, changes=changes)
    run_at("-1d", "run", "orders", cwd=pg_lab.root)
    pg_lab.assert_equal()
    write_rows(pg_lab, 21, 30, changes=changes)
    # A look only: what it finds does not depend on the day it believes in.
    assert "nothing new" not in run_at("+1d", "plan", cwd=pg_lab.root)
    project = pg_lab.project(mode=mode, change=BY_TIME)
    ok(project.run("orders"))
    pg_lab.assert_equal()
    assert_each_window_once(pg_lab, project.store.get)
    for offset in ("+1d", "-1d"):
        assert "nothing new" in run_at(offset, "run", "orders", cwd=pg_lab.root)


def stop_between_two_beats(pid: int, state: Path) -> None:
    """One that was stopped in the middle of a beat would hold the file's lock for ever."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: is_stopped(pid))
        with sqlite3.connect(state, timeout=0.1, isolation_level=None) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
                db.execute("ROLLBACK")
                return
            except sqlite3.OperationalError:
                os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize(("holder", "second"), [("+1d", "-1d"), ("-1d", "+1d")])
def test_a_lease_is_neither_stale_nor_held_for_ever_by_another_clock(pg_lab: Lab, holder: str, second: str) -> None:
    """A holder that beats keeps the other out, whatever day it is there. One that was stopped is taken over after a
    TTL of the observer's own."""
    pg_lab.fill(5)
    project = pg_lab.project()
    pg_lab.append_line("lease_ttl: 3s")
    fault = ["source.look:after=delay@120", "--", "run", "orders"]
    working = start_at(holder, "floodmark.testing.faults", *fault, cwd=pg_lab.root)
    try:
        wait_for(lambda: is_held(project, pg_lab))
        assert "running already" in run_at(second, "run", "orders", cwd=pg_lab.root, code=3)
        # Not `working` itself, which is faketime: it starts the command and waits for it.
        stopped = held_by(project, pg_lab)
        stop_between_two_beats(stopped, pg_lab.root / "state.db")
        run_at(second, "state", "set", "orders", "--mark", "2026-01-01", cwd=pg_lab.root)
        os.kill(stopped, signal.SIGKILL)
    finally:
        working.kill()
        working.wait()
    state = project.store.get("orders")
    assert state is not None
    assert str(state.mark).startswith("2026-01-01")
