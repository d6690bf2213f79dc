"""A range loaded again: the same table after each time, and the mark where it was."""

from __future__ import annotations

import pytest
from tests.lab import Lab, ok

from floodmark.errors import ConfigError, Refused
from floodmark.testing.faults import FaultPlan

HOURS = [f"2026-01-01 {hour:02}:00:00" for hour in range(10)]


def fill_hours(lab: Lab, per_hour: int = 5) -> None:
    for number, moment in enumerate(HOURS):
        lab.fill(per_hour, moment, start=1 + number * per_hour)


def test_upsert_twice_mends_what_was_lost_and_leaves_the_mark(lab: Lab) -> None:
    batch_rows = 1000 if lab.kind == "sqlite" else 7
    fill_hours(lab)
    mark = ok(lab.project().run("orders")).mark
    project = lab.project(batch_rows=batch_rows)
    # A row whose cursor the application forgot to touch, and one that somebody deleted from the target.
    lab.execute("UPDATE orders SET val = 'silent' WHERE id = 12")
    assert lab.spark is not None
    lab.spark.sql(f"DELETE FROM delta.`{lab.table}` WHERE id = 13")
    first = ok(project.backfill("orders", HOURS[2], HOURS[4]))
    lab.assert_equal()
    assert (first.rows.updated, first.rows.inserted, first.mark) == (1, 1, mark)
    second = ok(project.backfill("orders", HOURS[2], HOURS[4]))
    lab.assert_equal()
    assert second.rows.loaded == 0
    assert (state := project.state("orders")) is not None
    assert state.mark == mark
    assert ok(project.run("orders")).nothing_new


def test_append_twice_replaces_the_range_in_one_commit(lab: Lab) -> None:
    lab.fill(50)
    project = lab.project(mode="append", batch_rows=7)
    mark = ok(project.run_until_complete("orders")).mark
    lab.execute("UPDATE orders SET val = 'again' WHERE id BETWEEN 10 AND 20")
    lab.execute("DELETE FROM orders WHERE id = 15")
    version = ok(project.run("orders")).version
    for _ in range(2):
        result = ok(project.backfill("orders", "10", "21"))
        assert (result.slices, result.rows.inserted, result.mark) == (1, 10, mark)
        lab.assert_equal()
    assert version is None
    lab.fill(3, start=51)
    assert ok(project.run("orders")).rows.inserted == 3
    lab.assert_equal()


def test_append_of_a_range_that_is_gone_from_the_source_may_leave_the_table_empty(sqlite_lab: Lab) -> None:
    sqlite_lab.fill(5)
    project = sqlite_lab.project(mode="append")
    ok(project.run("orders"))
    sqlite_lab.execute("DELETE FROM orders")
    ok(project.backfill("orders"))
    sqlite_lab.assert_equal()
    sqlite_lab.fill(2, start=6)
    assert ok(project.run("orders")).rows.inserted == 2
    sqlite_lab.assert_equal()


def test_it_ends_at_the_mark(lab: Lab) -> None:
    lab.fill(20)
    project = lab.project(mode="append")
    ok(project.run("orders"))
    lab.fill(5, start=21)
    result = ok(project.backfill("orders", "11", "1000"))
    assert result.rows.inserted == 10
    assert ok(project.run("orders")).rows.inserted == 5
    lab.assert_equal()
    with pytest.raises(ConfigError, match=r"the range is empty: it begins at 500 and ends at 26 \(the mark"):
        project.plan_backfill("orders", "500")
    assert isinstance(project.backfill("orders", "9", "8").failure, ConfigError)


def test_without_a_range_all_that_is_loaded_is_loaded_again(lab: Lab) -> None:
    fill_hours(lab)
    project = lab.project()
    ok(project.run("orders"))
    lab.execute("UPDATE orders SET val = 'silent'")
    # The rows at the mark itself are the next run's.
    assert ok(project.backfill("orders")).rows.updated == 45
    assert ok(project.run("orders")).rows.updated == 5
    lab.assert_equal()


def test_rows_from_before_the_start_and_a_gap_are_filled(pg_lab: Lab) -> None:
    fill_hours(pg_lab)
    project = pg_lab.project(change=f"{{by: timestamp, column: updated_at, delay: 0s, start: '{HOURS[6]}'}}")
    assert ok(project.run("orders")).rows.inserted == 20
    assert ok(project.backfill("orders", None, HOURS[6])).rows.inserted == 30
    pg_lab.assert_equal()


def test_before_the_first_load_it_is_refused(pg_lab: Lab) -> None:
    pg_lab.fill(1)
    project = pg_lab.project()
    failure = project.backfill("orders").failure
    assert isinstance(failure, Refused)
    assert "nothing is loaded yet" in str(failure)
    full = pg_lab.project(change="{by: none}", target="{connection: lake, table: orders, mode: replace}")
    assert "no range to load again" in full.backfill("orders").errors[0]


def test_a_range_of_text_cant_be_replaced_in_append(pg_lab: Lab) -> None:
    pg_lab.fill(3)
    project = pg_lab.project(mode="append", change="{by: sequence, column: val, delay: 0s}")
    ok(project.run("orders"))
    failure = project.backfill("orders", "v1", "v3").failure
    assert isinstance(failure, Refused)
    assert "only the source knows the order" in str(failure)


def test_a_paused_backfill_never_restores_an_older_value(pg_lab: Lab) -> None:
    """It has read, and a normal run overtakes it: the lease is lost, and its ordinal is spent."""
    fill_hours(pg_lab)
    ok(pg_lab.project().run("orders"))
    other = pg_lab.load()

    class Overtaken:
        def emit(self, event: object) -> None:
            if type(event).__name__ == "StageStarted" and getattr(event, "stage", "") == "load" and not self.done:
                self.done = True
                pg_lab.execute("UPDATE orders SET val = 'newer', updated_at = '2026-01-02' WHERE id = 12")
                holder = other.store
                lease = holder.holder(f"delta:{pg_lab.table}")  # type: ignore[attr-defined]
                holder.release(lease)  # type: ignore[attr-defined]
                ok(other.run("orders"))

        done = False

    result = pg_lab.load().backfill("orders", HOURS[0], HOURS[5], sink=Overtaken())
    assert not result.success
    pg_lab.assert_equal()
    ok(pg_lab.load().backfill("orders", HOURS[0], HOURS[5]))
    pg_lab.assert_equal()


@pytest.mark.parametrize("mode", ["upsert", "append"])
@pytest.mark.parametrize("fault", ["target.load:before=error", "store.save#2:before=error"])
def test_one_that_failed_leaves_a_table_that_runs_and_backfills_go_on_from(pg_lab: Lab, mode: str, fault: str) -> None:
    pg_lab.fill(30)
    ok(pg_lab.project(mode=mode).run("orders"))
    pg_lab.execute("UPDATE orders SET val = 'silent' WHERE id = 7")
    bounds = ("1", "20") if mode == "append" else ("2026-01-01", "2026-01-01 10:00:00.5")
    faulty = pg_lab.project(FaultPlan.of(fault).registry(), mode=mode)
    faulty.backfill("orders", *bounds)
    pg_lab.fill(5, "2026-01-03", start=31)
    ok(pg_lab.load().run("orders"))
    ok(pg_lab.load().backfill("orders", *bounds))
    ok(pg_lab.load().run("orders"))
    if mode == "append":
        pg_lab.assert_equal()
    assert len(pg_lab.target_rows()) == 35


def test_state_is_rebuilt_over_a_backfill(pg_lab: Lab) -> None:
    pg_lab.fill(30)
    project = pg_lab.project(mode="append")
    mark = ok(project.run("orders")).mark
    ok(project.backfill("orders", "5", "9"))
    (pg_lab.root / "state.db").unlink()
    again = pg_lab.load()
    result = ok(again.run("orders"))
    assert result.nothing_new
    assert result.mark == mark
    state = again.state("orders")
    assert state is not None
    assert [w.lane.partition("-")[0] for w in state.windows] == ["main", "backfill"]
