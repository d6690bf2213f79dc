"""Rows that share a cursor value are never cut apart, lost or doubled."""

from __future__ import annotations

from tests.lab import Lab, ok


def test_a_thousand_ties_across_a_slice_boundary_are_loaded_once(lab: Lab) -> None:
    lab.fill(300, "2026-01-01 10:00:00")
    lab.fill(1000, "2026-01-01 10:00:01", start=301)
    lab.fill(600, "2026-01-01 10:00:02", start=1301)
    project = lab.project(batch_rows=500)
    result = ok(project.run("orders"))
    assert result.rows.inserted == 1900
    assert result.slices == 3
    assert [w.rows for w in project.store.get("orders").windows] == [300, 1000, 600]  # type: ignore[union-attr]
    lab.assert_equal()


def test_ties_in_append_by_version_are_loaded_once(server_lab: Lab) -> None:
    server_lab.drop_key()
    server_lab.insert(*((1, f"a{i}", "2026-01-01 10:00:00") for i in range(50)))
    server_lab.insert(*((2, f"b{i}", "2026-01-01 10:00:00") for i in range(150)))
    server_lab.insert(*((3, f"c{i}", "2026-01-01 10:00:00") for i in range(50)))
    result = ok(server_lab.project(mode="append", batch_rows=100).run("orders"))
    assert (result.rows.inserted, result.slices) == (250, 3)
    server_lab.assert_equal()


def test_two_hundred_thousand_ties_load_in_bounded_slices_and_resume(server_lab: Lab) -> None:
    """A bulk update stamped all rows with one moment: a composite cursor cuts inside it."""
    server_lab.series(200_000, "2026-01-01 10:00:00")
    declared = {"batch_rows": 50_000, "change": "{by: timestamp, columns: [updated_at, id], delay: 0s}"}
    first = ok(server_lab.project(**declared).run("orders", max_slices=1))
    assert (first.rows.inserted, first.slices, first.complete) == (50_000, 1, False)
    project = server_lab.project(**declared)
    rest = ok(project.run("orders"))
    assert (rest.rows.inserted, rest.slices, rest.complete) == (150_000, 3, True)
    state = project.store.get("orders")
    assert state is not None
    assert [w.rows for w in state.windows] == [50_000] * 4
    assert {w.state for w in state.windows} == {"committed"}
    server_lab.assert_equal()
