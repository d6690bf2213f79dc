"""What may pass is tried again in a real run, told, and lands once; what can't pass fails at once."""

from __future__ import annotations

import threading

import psycopg
import pytest
from tests.lab import Lab, ok
from tests.services import PostgresServer, wait_for

from floodmark.model.event import Event, Notice
from floodmark.testing.faults import FaultPlan

QUICK = "{wait: 1ms, longest_wait: 10ms}"


@pytest.mark.parametrize("mode", ["upsert", "append"])
@pytest.mark.parametrize(
    "fault",
    [
        "source.describe:before=cut",
        "source.look:after=cut",
        "source.next_cut:before=cut",
        "source.snapshot:before=cut",
        "target.load:before=cut",
        "target.load:after=cut",
        "store.save#1:before=cut",
        "store.save#1:after=cut",
        "store.save#2:after=cut",
    ],
)
def test_a_fault_that_passes(pg_lab: Lab, fault: str, mode: str) -> None:
    pg_lab.fill(6, "2026-01-01")
    pg_lab.fill(6, "2026-01-02", start=7)
    project = pg_lab.project(FaultPlan.of(fault).registry(), mode=mode, batch_rows=6, retries=QUICK)
    result = ok(project.run("orders"))
    pg_lab.assert_equal()
    assert result.rows.inserted == 12
    told = [notice for notice in result.notices if "trying again in a moment (2 of 5)" in notice]
    # A load that failed after its commit is found in the history: there is nothing to try again.
    assert len(told) == (0 if fault == "target.load:after=cut" else 1)
    assert ok(project.run("orders")).nothing_new


def test_a_plan_tells_its_tries_too(pg_lab: Lab) -> None:
    pg_lab.fill(1)
    events = Collected()
    project = pg_lab.project(FaultPlan.of("source.look:before=cut").registry(), retries=QUICK)
    assert project.plan("orders", sink=events).rows == 1
    assert [e.text for e in events.found if isinstance(e, Notice)] == [
        "injected failure at source.look (before): trying again in a moment (2 of 5)"
    ]


class Collected:
    def __init__(self) -> None:
        self.found: list[Event] = []

    def emit(self, event: Event) -> None:
        self.found.append(event)


def test_what_can_not_pass_is_not_tried_again(pg_lab: Lab) -> None:
    pg_lab.fill(1)
    plan = FaultPlan.of("source.look:before=error")
    result = pg_lab.project(plan.registry()).run("orders")
    assert not result.success
    assert plan.calls["source.look"] == 1
    assert not result.notices


def test_the_attempts_are_counted(pg_lab: Lab) -> None:
    pg_lab.fill(1)
    faults = [f"source.look#{n}:before=cut" for n in (1, 2, 3)]
    plan = FaultPlan.of(*faults)
    result = pg_lab.project(plan.registry(), retries="{attempts: 3, wait: 1ms}").run("orders")
    assert "injected failure at source.look" in result.errors[0]
    assert plan.calls["source.look"] == 3


def test_sessions_that_the_server_ends(pg_lab: Lab, postgres: PostgresServer) -> None:
    """An administrator ends every session of ours, again and again, while the run works."""
    pg_lab.fill(500)
    done = threading.Event()

    def end_sessions() -> None:
        with psycopg.connect(pg_lab.url, autocommit=True) as db:
            for _ in range(4):
                db.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'floodmark' AND datname = current_database()"
                )
                if done.wait(0.15):
                    return

    enemy = threading.Thread(target=end_sessions)
    project = pg_lab.project(batch_rows=200, retries="{attempts: 20, wait: 20ms, longest_wait: 200ms}")
    enemy.start()
    result = ok(project.run("orders"))
    done.set()
    enemy.join()
    assert result.success
    pg_lab.assert_equal()


def test_another_writer_of_the_delta_table(pg_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody deletes from the table while our merge is at work: Delta refuses ours, and it is done again."""
    # A small batch is read before the merge begins; here the reading is what it waits for.
    monkeypatch.setattr("floodmark.targets.small_batch.SMALL_BATCH", 0)
    monkeypatch.setattr("floodmark.loader.Loader._may_be_empty", lambda *_: False)
    pg_lab.fill(5)
    ok(pg_lab.project().run("orders"))
    pg_lab.execute("UPDATE orders SET val = 'new', updated_at = '2026-02-01'")
    (pg_lab.root / "waiting.py").write_text(WAITING)
    assert pg_lab.spark is not None
    spark = pg_lab.spark

    def interfere() -> None:
        wait_for((pg_lab.root / "began").exists)
        spark.newSession().sql(f"DELETE FROM delta.`{pg_lab.table}` WHERE id = 5")
        (pg_lab.root / "deleted").touch()

    enemy = threading.Thread(target=interfere)
    enemy.start()
    result = ok(pg_lab.project(retries=QUICK, transform="{python: 'waiting:until_deleted'}").run("orders"))
    enemy.join()
    assert any("trying again" in notice for notice in result.notices)
    assert (result.rows.updated, result.rows.inserted) == (4, 1)
    pg_lab.assert_equal()


WAITING = """
import pathlib, time
from pyspark.sql import functions as F
HERE = pathlib.Path(__file__).parent

def until_deleted(batch):
    def wait(value):
        (HERE / "began").touch()
        while not (HERE / "deleted").exists():
            time.sleep(0.05)
        return value
    return batch.withColumn("val", F.udf(wait, "string")("val"))
"""
