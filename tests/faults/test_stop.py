"""Ctrl-C and SIGTERM at a real command line: the slice is given up, the lease is free, and nothing is left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.lab import Lab, ok
from tests.services import start_faulty, wait_for

SLOW = (
    "{sql: \"select * from source where java_method('java.lang.Thread', 'sleep', cast(20 + id * 0 as bigint)) "
    'is not null"}'
)
"""40 seconds of Spark for 2,000 rows."""


def children(pid: int) -> set[int]:
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found |= {child} | children(child)
    return found


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def said(lab: Lab) -> str:
    log = lab.root / "faulty.log"
    return log.read_text() if log.exists() else ""


def stopped(lab: Lab, process: subprocess.Popen[str], number: int, *, times: int = 1) -> str:
    """Sends the signal, and checks all that holds however a run is stopped."""
    family = children(process.pid)
    for _ in range(times):
        process.send_signal(number)
        time.sleep(0.3)
    assert process.wait(timeout=60) == 128 + number, said(lab)
    wait_for(lambda: not any(map(is_there, family)), "its JVM to end", 30)
    project = lab.load()
    assert project.store.holder(f"delta:{lab.table}") is None  # type: ignore[attr-defined]
    state = project.state("orders")
    assert state is None or state.intent is None
    words = said(lab)
    for noise in ("Traceback", "py4j", "Exception", "KeyboardInterrupt"):
        assert noise not in words
    return words


@pytest.mark.parametrize(("number", "mode"), [(signal.SIGINT, "upsert"), (signal.SIGTERM, "append")])
def test_in_the_middle_of_a_load(pg_lab: Lab, number: int, mode: str) -> None:
    pg_lab.fill(2000)
    pg_lab.write(mode=mode, transform=SLOW, batch_rows=10_000)
    process = start_faulty("run", "orders", cwd=pg_lab.root)
    wait_for(lambda: "load started" in said(pg_lab), "the load")
    wait_for(lambda: (Path(pg_lab.table) / "_delta_log").exists(), "the table")
    words = stopped(pg_lab, process, number)
    assert "stopping" in words
    assert re.search(r"✗ orders  stopped: what was committed stays", words)
    assert pg_lab.load().status("orders").health == "stopped"
    pg_lab.write(mode=mode, batch_rows=10_000)
    ok(pg_lab.load().run("orders"))
    pg_lab.assert_equal()


def test_between_two_slices_what_was_committed_stays(pg_lab: Lab) -> None:
    pg_lab.fill(30)
    pg_lab.write(mode="append", batch_rows=10)
    process = start_faulty("store.save#4:before=delay@3", "run", "orders", cwd=pg_lab.root)
    wait_for(lambda: "slice 1 of 3" in said(pg_lab), "the first slice")
    wait_for(lambda: len(list((Path(pg_lab.table) / "_delta_log").glob("*.json"))) >= 2, "its commit")
    stopped(pg_lab, process, signal.SIGTERM)
    result = ok(pg_lab.load().run("orders"))
    pg_lab.assert_equal()
    assert 0 < (result.rows.inserted or 0) < 30


def test_while_spark_starts(pg_lab: Lab) -> None:
    pg_lab.fill(5)
    pg_lab.write()
    process = start_faulty("run", "orders", cwd=pg_lab.root)
    wait_for(lambda: children(process.pid), "the JVM")
    stopped(pg_lab, process, signal.SIGINT)
    ok(pg_lab.load().run("orders"))
    pg_lab.assert_equal()


def test_before_anything_began(pg_lab: Lab) -> None:
    pg_lab.fill(5)
    pg_lab.write()
    process = start_faulty("source.look:before=delay@2", "run", "orders", cwd=pg_lab.root)
    wait_for(lambda: "floodmark_leases" in _tables(pg_lab) and _held(pg_lab), "the lease")
    stopped(pg_lab, process, signal.SIGTERM)


def test_a_second_signal_ends_it_at_once(pg_lab: Lab) -> None:
    pg_lab.fill(2000)
    pg_lab.write(transform=SLOW, batch_rows=10_000)
    process = start_faulty("source.snapshot:before=delay@30", "run", "orders", cwd=pg_lab.root)
    wait_for(lambda: "load started" in said(pg_lab), "the load")
    began = time.monotonic()
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    assert process.wait(timeout=60) == 130
    assert time.monotonic() - began < 29, "it waited for the step that it was in"
    assert "Traceback" not in said(pg_lab)
    ok(pg_lab.project().run("orders"))
    pg_lab.assert_equal()


def _tables(lab: Lab) -> str:
    import sqlite3

    if not (lab.root / "state.db").exists():
        return ""
    with sqlite3.connect(lab.root / "state.db") as db:
        return str(db.execute("SELECT name FROM sqlite_master").fetchall())


def _held(lab: Lab) -> bool:
    return lab.load().store.holder(f"delta:{lab.table}") is not None  # type: ignore[attr-defined]


def test_the_interrupt_handler_is_put_back() -> None:
    code = (
        "import signal\nfrom floodmark.cli.main import main\n"
        "before = signal.getsignal(signal.SIGINT)\nmain(['run', '-f', 'nowhere.yml'])\n"
        "assert signal.getsignal(signal.SIGINT) is before\n"
    )
    assert subprocess.run([sys.executable, "-c", code], env=os.environ, check=False).returncode == 0
