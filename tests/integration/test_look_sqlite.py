"""SQLite has one writer at a time: its lock is the fence; who holds it writes nothing older than what is visible."""

from __future__ import annotations

import sqlite3

import pytest
from tests.lab import Lab, ok
from tests.late import BY_ID, BY_TIME, NEW, add, filled_by_database, until_all_is_in


@pytest.mark.parametrize("change", [BY_TIME, BY_ID])
@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_an_open_writer(sqlite_lab: Lab, change: str, journal: str) -> None:
    world = filled_by_database(sqlite_lab)
    project = world.project(mode="append", change=change)
    late = sqlite3.connect(world.root / "shop.db", isolation_level=None)
    late.execute(f"PRAGMA journal_mode = {journal}")
    add(world, "early")
    late.execute("BEGIN IMMEDIATE")
    late.execute(NEW.format("late"))
    result = ok(project.run("orders"))
    assert result.guarantee == "fenced"
    late.execute("COMMIT")
    late.close()
    add(world, "newer")
    until_all_is_in(project, world)


def test_a_writer_that_has_been_open_for_longer_than_any_delay(sqlite_lab: Lab) -> None:
    """Its rows are older than the safety delay when they come; the clock must not have moved the mark past them."""
    world = filled_by_database(sqlite_lab)
    project = world.project(mode="append", change=BY_TIME.replace("wait", "delay: 0s, wait"))
    late = sqlite3.connect(world.root / "shop.db", isolation_level=None)
    world.execute("INSERT INTO orders VALUES (1, 'early', '2026-01-01 10:00:00')")
    late.execute("BEGIN IMMEDIATE")
    late.execute("INSERT INTO orders VALUES (2, 'late', '2026-01-01 10:00:00')")
    ok(project.run("orders"))
    late.execute("COMMIT")
    late.close()
    until_all_is_in(project, world)
