"""Empty and tiny tables, changed declarations, full refreshes, positions set by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.lab import Lab, ok

from floodmark.errors import ConfigError, Refused
from floodmark.testing.faults import FaultPlan


def test_an_empty_table_writes_nothing_and_then_its_first_row_loads(lab: Lab) -> None:
    project = lab.project()
    assert project.plan("orders").rows == 0
    result = ok(project.run("orders"))
    assert result.nothing_new
    assert not (lab.root / "lake").exists()
    lab.insert((1, "only", "2026-01-01 10:00:00"))
    assert ok(project.run("orders")).rows.inserted == 1
    lab.assert_equal()
    assert ok(project.run("orders")).nothing_new


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"target": "{connection: lake, table: orders, mode: upsert, keys: [id, val]}"}, "`target.keys` was id"),
        ({"change": "{by: sequence, column: id, delay: 0s}"}, "`change` was timestamp updated_at"),
        ({"target": "{connection: lake, table: elsewhere, mode: upsert, keys: [id]}"}, "`target.table` was orders"),
        ({"mode": "append", "change": "{by: timestamp, column: updated_at}"}, "`target.mode` was upsert"),
    ],
)
def test_a_changed_declaration_under_existing_state_is_refused(
    pg_lab: Lab, changed: dict[str, str], words: str
) -> None:
    pg_lab.fill(2)
    ok(pg_lab.project().run("orders"))
    project = pg_lab.project(**changed)
    result = project.run("orders")
    assert isinstance(result.failure, Refused)
    assert words in result.errors[0]
    assert result.failure.hint is not None
    assert "put it back" in result.failure.hint
    assert "--full-refresh" in result.failure.hint
    assert result.failure.declared_at is not None
    with pytest.raises(Refused):
        project.plan("orders")


def test_a_full_refresh_takes_the_new_declaration_on(server_lab: Lab) -> None:
    server_lab.fill(3)
    ok(server_lab.project().run("orders"))
    server_lab.execute("DELETE FROM orders WHERE id = 2")
    project = server_lab.project(target="{connection: lake, table: orders, mode: upsert, keys: [id, val]}")
    assert ok(project.run("orders", full_refresh=True)).rows.inserted == 2
    server_lab.assert_equal()
    assert ok(project.run("orders")).nothing_new


def test_change_none_replaces_the_whole_table_each_time(lab: Lab) -> None:
    project = lab.project(
        change="{by: none}", target="{connection: lake, table: orders, mode: replace, partition_by: [val]}"
    )
    lab.fill(3)
    assert str(project.plan("orders").guarantee) == "exact"
    assert ok(project.run("orders")).rows.inserted == 3
    lab.execute("DELETE FROM orders WHERE id = 1")
    assert ok(project.run("orders")).rows.inserted == 2
    lab.assert_equal()


def test_a_full_load_that_failed_is_done_once_by_the_next_run(pg_lab: Lab) -> None:
    pg_lab.fill(2)
    declared = {"change": "{by: none}", "target": "{connection: lake, table: orders, mode: replace}"}
    faults = FaultPlan.of("target.load:before=error").registry()
    assert not pg_lab.project(faults, **declared).run("orders").success
    result = ok(pg_lab.project(**declared).run("orders"))
    assert (result.rows.inserted, result.slices) == (2, 1)


def test_a_reset_in_append_replaces_what_it_loads_again(server_lab: Lab) -> None:
    """Reset means: read these rows again. Doubling them would not be what anybody meant."""
    server_lab.fill(30)
    project = server_lab.project(mode="append", batch_rows=12)
    ok(project.run("orders"))
    server_lab.execute("UPDATE orders SET val = 'corrected' WHERE id >= 20")
    server_lab.fill(3, start=31)
    state = project.reset("orders", "15")
    assert str(state.mark) == "15"
    result = ok(project.run("orders"))
    assert result.rows.inserted == 19
    server_lab.assert_equal()
    project.reset("orders")
    ok(project.run("orders"))
    server_lab.assert_equal()


def test_a_reset_over_a_commit_that_nobody_recorded_stands(pg_lab: Lab) -> None:
    """Killed between commit and ledger, then reset: the commit must not win over what the user asked for."""
    pg_lab.fill(10)
    faults = FaultPlan.of("store.save#2:before=error").registry()
    assert not pg_lab.project(faults, mode="append").run("orders").success
    project = pg_lab.project(mode="append")
    project.reset("orders")
    assert ok(project.run("orders")).rows.inserted == 10
    pg_lab.assert_equal()


def test_a_clustered_table_keeps_its_layout_through_a_full_refresh(pg_lab: Lab) -> None:
    assert pg_lab.spark is not None
    pg_lab.fill(3)
    project = pg_lab.project(target="{connection: lake, table: orders, mode: upsert, keys: [id], cluster_by: [val]}")
    ok(project.run("orders"))
    ok(project.run("orders", full_refresh=True))
    detail = pg_lab.spark.sql(f"DESCRIBE DETAIL delta.`{pg_lab.table}`").collect()[0]
    assert detail["clusteringColumns"] == ["val"]
    assert "deletionVectors" in detail["tableFeatures"]
    pg_lab.assert_equal()


def test_a_mark_set_forward_leaves_a_gap_that_status_shows(server_lab: Lab) -> None:
    server_lab.fill(10)
    project = server_lab.project(mode="append")
    ok(project.run("orders"))
    server_lab.fill(20, start=11)
    project.set_mark("orders", "21")
    assert ok(project.run("orders")).rows.inserted == 10
    assert {row[0] for row in server_lab.target_rows()} == {*range(1, 11), *range(21, 31)}
    assert project.status("orders").gaps == 1


def test_a_first_run_can_start_at_a_position(server_lab: Lab) -> None:
    server_lab.fill(10)
    project = server_lab.project(mode="append", change="{by: sequence, column: id, start: 6, delay: 0s}")
    plan = project.plan("orders")
    assert (plan.rows, plan.first) == (5, True)
    assert ok(project.run("orders")).rows.inserted == 5


def test_null_cursors_fail_with_their_count_or_are_left_out(server_lab: Lab) -> None:
    server_lab.make_nullable()
    server_lab.fill(2)
    server_lab.execute("INSERT INTO orders VALUES (3, 'x', NULL), (4, 'y', NULL)")
    result = server_lab.project().run("orders")
    assert "2 rows of orders have no updated_at" in result.errors[0]
    project = server_lab.project(change="{by: timestamp, column: updated_at, nulls: skip, delay: 0s}")
    assert ok(project.run("orders")).rows.inserted == 2


def test_a_null_in_a_key_stops_the_load_before_its_commit(server_lab: Lab) -> None:
    server_lab.execute("ALTER TABLE orders ADD COLUMN code text")
    server_lab.execute("INSERT INTO orders VALUES (1, 'a', '2026-01-01', 'k'), (2, 'b', '2026-01-01', NULL)")
    project = server_lab.project(target="{connection: lake, table: orders, mode: upsert, keys: [code]}")
    result = project.run("orders")
    assert "NULL in key column code (the row with updated_at = 2026-01-01 00:00:00), and would" in result.errors[0]
    assert "orders has NULL" in result.errors[0]
    assert project.state("orders").mark is None  # type: ignore[union-attr]


def test_a_position_that_does_not_fit_the_cursor_is_refused(pg_lab: Lab) -> None:
    project = pg_lab.project()
    with pytest.raises(ConfigError, match=r"'tomorrow' is not a time such as"):
        project.set_mark("orders", "tomorrow")


def test_a_key_twice_in_a_batch_keeps_the_newest(server_lab: Lab) -> None:
    server_lab.drop_key()
    server_lab.insert(
        (1, "old", "2026-01-01 10:00:00"), (1, "new", "2026-01-01 10:00:01"), (2, "b", "2026-01-01 10:00:00")
    )
    assert ok(server_lab.project().run("orders")).rows.inserted == 2
    assert [row[:2] for row in server_lab.target_rows()] == [(1, "new"), (2, "b")]


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_batch_that_a_transform_leaves_empty_makes_no_commit(sqlite_lab: Lab, mode: str) -> None:
    sqlite_lab.fill(3)
    project = sqlite_lab.project(
        mode=mode, transform="{sql: \"select * from source where val = 'wanted'\"}", batch_rows=2
    )
    ok(project.run_until_complete("orders"))
    assert not Path(sqlite_lab.table).exists()
    sqlite_lab.insert((4, "wanted", "2026-01-02 10:00:00"), (5, "not that one", "2026-01-03 10:00:00"))
    ok(project.run_until_complete("orders"))
    version, mark = DeltaTable(sqlite_lab.table).version(), project.state("orders").mark  # type: ignore[union-attr]
    sqlite_lab.insert((6, "nor that one", "2026-01-04 10:00:00"))
    result = ok(project.run("orders"))
    assert (result.rows.loaded, result.nothing_new) == (0, False)
    assert DeltaTable(sqlite_lab.table).version() == version
    assert project.state("orders").mark != mark  # type: ignore[union-attr]
    assert ok(project.run("orders")).nothing_new
    project.store.delete("orders")
    sqlite_lab.insert((7, "wanted", "2026-01-05 10:00:00"))
    ok(project.run("orders"))
    assert sorted(row[0] for row in sqlite_lab.target_rows()) == [4, 7]
