"""The demo, scene by scene. What it claims it checks: a claim that doesn't hold makes the demo fail."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from floodmark.cli.demo_shop import BATCH_ROWS, EVENTS, ORDERS, PROJECT, TIED, Shop, Trade
from floodmark.cli.output import Output
from floodmark.cli.session import Session

SETTLE_SECONDS = 2.0
"""The mark never passes the second that is still running, so a quiet run wants the last change behind it."""
PATIENCE_SECONDS = 300.0

_IN_NEW_PROCESS = """
import sys
from floodmark.cli.main import main
code = main(sys.argv[1:])
sys.exit(code or ("pyspark" in sys.modules and 70) or 0)
"""


class Story:
    def __init__(self, out: Output, session: Session, stage: Path) -> None:
        self._out = out
        self._session = session
        self._stage = stage
        self._shop = Shop(stage / "shop.db")
        self._good = True

    def tell(self) -> bool:
        self._first_load()
        self._changes()
        self._quiet_run()
        self._killed_run()
        self._verdict()
        return self._good

    # -- scenes ---------------------------------------------------------------------------------------------------

    def _first_load(self) -> None:
        self._shop.open()
        (self._stage / "floodmark.yml").write_text(PROJECT, encoding="utf-8")
        self._say(
            f"A shop with {ORDERS:,} orders and {EVENTS:,} events in SQLite is to be kept in a lake of Delta tables.",
            "This file says so:",
        )
        self._out.line("$ cat floodmark.yml")
        self._out.lines(PROJECT.splitlines())
        self._say(
            f"The first run reads everything, the orders in slices of {BATCH_ROWS:,}: each is a commit of its own,",
            f"and a load that is interrupted goes on where it stopped. {len(TIED)} orders share one timestamp just",
            "where a cut by count would part them; the cut goes around them.",
        )
        self._floodmark("run")
        self._floodmark("status")

    def _changes(self) -> None:
        trade = self._trade(updates=1_200, ties=300, inserts=312, events=20)
        self._say(
            f"The shop trades on: {trade.updated:,} orders change (300 of them in one go, on one timestamp),",
            f"{trade.inserted:,} are new, and {trade.events} events come in. Only these move:",
        )
        self._floodmark("plan")
        self._compare_counts(trade, "run")

    def _quiet_run(self) -> None:
        self._say("Nothing has changed since. A new process finds that out without starting Spark:")
        self._out.line("$ floodmark run")
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", _IN_NEW_PROCESS, "run"], capture_output=True, text=True, check=False
        )
        took = time.monotonic() - started
        self._out.lines((done.stdout + done.stderr).splitlines())
        quiet = done.returncode == 0 and done.stdout.count("nothing new (") == 2
        self._check(quiet, f"both checked in {took:.1f} s, from the start of the process to its end, without Spark")

    def _killed_run(self) -> None:
        trade = self._trade(updates=800, ties=200, inserts=250, events=15)
        self._say(
            f"Again {trade.updated:,} orders change, {trade.inserted:,} are new, {trade.events} events come in. "
            "This time the run is killed while it loads:",
        )
        self._out.line("$ floodmark run & … kill -9")
        killed = self._run_and_kill()
        self._check(killed, "killed with SIGKILL in the middle of the load", "the run ended before it could be killed")
        self._say("The ledger knows that a load was begun, not what became of it:")
        self._floodmark("status")
        self._say("The next run asks the target, finds that the load did not land, and does the same window again:")
        self._compare_counts(trade, "run")

    def _verdict(self) -> None:
        from floodmark.cli.demo_verdict import judge
        from floodmark.model.spec import SparkSpec
        from floodmark.spark.session import open_session

        self._say("And is everything there, once? Every row of the shop against every row of the lake:")
        # Beside the warm session of the runs; it ends with theirs.
        spark = open_session(SparkSpec(), needs=["delta"], log_file=self._stage / ".floodmark" / "logs" / "spark.log")
        verdict = judge(self._shop.path, self._stage / "lake", spark)
        self._good = self._good and not verdict.differences
        self._out.line(verdict.text)
        self._out.lines(f"  {difference}" for difference in verdict.differences[:10])

    # -- how it is told -------------------------------------------------------------------------------------------

    def _say(self, *lines: str) -> None:
        self._out.line()
        self._out.lines(f"# {line}" for line in lines)

    def _check(self, holds: bool, claim: str, otherwise: str = "") -> None:
        self._good = self._good and holds
        self._out.line(f"✓ {claim}" if holds else f"✗ {otherwise or f'not so: {claim}'}")

    def _trade(self, *, updates: int, ties: int, inserts: int, events: int) -> Trade:
        trade = self._shop.trade(updates=updates, ties=ties, inserts=inserts, events=events)
        time.sleep(SETTLE_SECONDS)
        return trade

    def _floodmark(self, *arguments: str) -> None:
        from floodmark.cli.main import invoke

        self._out.line(f"$ floodmark {shlex.join(arguments)}")
        code = invoke(list(arguments), self._session)
        if code:
            self._check(False, "", f"exit code {code}")

    def _compare_counts(self, trade: Trade, *arguments: str) -> None:
        self._session.results.clear()
        self._floodmark(*arguments)
        rows = {result.pipeline: result.rows for result in self._session.results if result.success}
        orders, events = rows.get("orders"), rows.get("events")
        reported = (
            (orders.updated, orders.inserted, events.inserted) if orders is not None and events is not None else None
        )
        self._check(
            reported == (trade.updated, trade.inserted, trade.events),
            "just what the shop itself counted: "
            f"{trade.updated:,} updated, {trade.inserted:,} inserted, {trade.events} events",
            f"the shop counted {(trade.updated, trade.inserted, trade.events)}, the run reports {reported}",
        )

    def _run_and_kill(self) -> bool:
        """True when it was killed while it loaded. In a process group of its own, so that its JVM dies with it."""
        process = subprocess.Popen(
            [sys.executable, "-m", "floodmark.cli.main", "run"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        watchdog = threading.Timer(PATIENCE_SECONDS, _kill_group, [process.pid])
        watchdog.start()
        try:
            for line in process.stdout or ():
                self._out.line(line.rstrip("\n"))
                if "load started" in line:
                    _kill_group(process.pid)
                    break
            return process.wait() == -signal.SIGKILL
        finally:
            watchdog.cancel()
            _kill_group(process.pid)
            process.communicate()


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
