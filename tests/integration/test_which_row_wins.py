"""Higher cursor wins; at equal cursors the later read does. Never strict greater: that loses the second update."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.lab import Lab, ok

from floodmark.model.position import Position


def test_a_second_update_with_the_same_cursor_value_wins(lab: Lab) -> None:
    lab.insert((1, "old", "2026-01-01 10:00:00"), (2, "other", "2026-01-01 10:00:00"))
    project = lab.project()
    ok(project.run("orders"))
    lab.execute("UPDATE orders SET val = 'first', updated_at = '2026-01-02 10:00:00' WHERE id = 1")
    ok(project.run("orders"))
    assert ok(project.run("orders")).nothing_new
    lab.execute("UPDATE orders SET val = 'second' WHERE id = 1")
    result = ok(project.run("orders"))
    assert (result.rows.updated, result.rows.inserted) == (1, 0)
    lab.assert_equal()


def test_an_older_row_arriving_later_never_overwrites_a_newer_one(lab: Lab) -> None:
    lab.insert((1, "new", "2026-01-02 10:00:00"))
    project = lab.project()
    ok(project.run("orders"))
    lab.execute("UPDATE orders SET val = 'stale', updated_at = '2026-01-01 10:00:00' WHERE id = 1")
    lab.insert((2, "b", "2026-01-01 10:00:00"))
    project.reset("orders")
    result = ok(project.run("orders"))
    assert (result.rows.updated, result.rows.inserted) == (0, 1)
    assert [row[:2] for row in lab.target_rows()] == [(1, "new"), (2, "b")]


def test_a_row_updated_between_two_slices_of_a_first_load_is_there_once_and_newest(lab: Lab) -> None:
    for second in range(3):
        lab.fill(100, f"2026-01-01 10:00:0{second}", start=second * 100 + 1)
    project = lab.project(batch_rows=100)
    first = ok(project.run("orders", max_slices=1))
    assert first.rows.inserted == 100
    lab.execute("UPDATE orders SET val = 'moved', updated_at = '2026-01-01 11:00:00' WHERE id = 50")
    ok(project.run_until_complete("orders"))
    assert [row for row in lab.target_rows() if row[0] == 50] == [(50, "moved", "2026-01-01 11:00:00.000000")]
    lab.assert_equal()


def test_rows_read_again_are_neither_rewritten_nor_counted(server_lab: Lab) -> None:
    server_lab.fill(10, "2026-01-01 10:00:00")
    project = server_lab.project()
    ok(project.run("orders"))
    server_lab.insert((11, "new", "2026-01-01 10:00:01"))
    project.reset("orders", "2026-01-01 10:00:00")
    result = ok(project.run("orders"))
    assert (result.rows.read, result.rows.updated, result.rows.inserted) == (11, 0, 1)


def test_rows_on_the_mark_that_are_as_they_were_are_not_read_again(lab: Lab) -> None:
    lab.fill(10, "2026-01-01 10:00:00")
    project = lab.project()
    ok(project.run("orders"))
    for number in (11, 12):
        lab.insert((number, "new", f"2026-01-01 10:00:{number}"))
        result = ok(project.run("orders"))
        assert (result.rows.read, result.rows.updated, result.rows.inserted) == (1, 0, 1)
    lab.assert_equal()
    state = project.store.get("orders")
    assert state is not None
    assert str(state.mark) == "2026-01-01 10:00:12", "the window goes on from the old mark all the same"
    assert ok(project.run("orders")).nothing_new


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        ("UPDATE orders SET val = 'again' WHERE id = 3", 1),
        ("INSERT INTO orders VALUES (20, 'a tie', '2026-01-01 10:00:00')", 0),
        ("UPDATE orders SET updated_at = '2026-01-01 10:00:02' WHERE id = 3", 1),
    ],
)
def test_where_one_of_them_is_not_as_it_was_all_are_read_again(server_lab: Lab, change: str, changed: int) -> None:
    server_lab.fill(10, "2026-01-01 10:00:00")
    project = server_lab.project()
    ok(project.run("orders"))
    server_lab.execute(change)
    server_lab.insert((11, "new", "2026-01-01 10:00:01"))
    result = ok(project.run("orders"))
    assert result.rows.read == len(server_lab.source_rows())
    assert result.rows.updated == changed, "and those that say nothing new are not written"
    server_lab.assert_equal()


def test_rows_above_the_bound_are_loaded_ahead_and_the_mark_waits(server_lab: Lab) -> None:
    """Delayed by an hour: what is younger is loaded at once, and read again until it is old enough."""
    project = server_lab.project(change="{by: timestamp, column: updated_at, fence: off, delay: 1h}")
    now = datetime.now(UTC)
    server_lab.insert(*((i, "v", f"{now - i * timedelta(minutes=20):%Y-%m-%d %H:%M:%S.%f}") for i in range(1, 7)))
    result = ok(project.run("orders"))
    assert result.rows.inserted == 6
    assert str(result.guarantee) == "delayed 1h"
    state = project.store.get("orders")
    assert state is not None
    assert [w.state for w in state.windows] == ["committed", "loaded"]
    mark, ahead = state.mark, state.windows[1]
    assert isinstance(mark, Position)
    assert ahead.until is not None
    assert mark.precedes(ahead.until)
    again = ok(project.run("orders"))
    assert again.nothing_new, "rows loaded ahead are recognised without Spark"
    waited = server_lab.project(change="{by: timestamp, column: updated_at, fence: off, delay: 30m}")
    assert ok(waited.run("orders")).nothing_new
    moved = waited.store.get("orders")
    assert moved is not None
    assert moved.mark is not None
    assert mark.precedes(moved.mark), "seen again unchanged and proven by now: the mark moves without a load"
    assert moved.head == state.head
    server_lab.execute("UPDATE orders SET val = 'late' WHERE id = 1")
    server_lab.insert((7, "a late commit", f"{now - timedelta(minutes=30):%Y-%m-%d %H:%M:%S.%f}"))
    ok(project.run("orders"))
    server_lab.assert_equal()
