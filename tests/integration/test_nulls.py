"""Rows without a cursor value: refused, loaded, left out or given another column's value; counted at little cost."""

from __future__ import annotations

import pytest
from tests.lab import Lab, ok

from floodmark.errors import ConfigError
from floodmark.testing.faults import FaultPlan

NULLABLE = {
    "postgres": "CREATE TABLE orders (id bigint PRIMARY KEY, val text, updated_at timestamptz, made timestamptz)",
    "mariadb": "CREATE TABLE orders (id bigint PRIMARY KEY, val text, updated_at datetime(6), made datetime(6))",
    "sqlite": "CREATE TABLE orders (id INTEGER PRIMARY KEY, val TEXT, updated_at DATETIME, made DATETIME)",
}


def change(**options: str) -> str:
    declared = {"by": "timestamp", "column": "updated_at", "delay": "0s", **options}
    return "{" + ", ".join(f"{key}: {value}" for key, value in declared.items()) + "}"


def keyed(mode: str) -> str:
    return f"{{connection: lake, table: orders, mode: {mode}, keys: [id]}}"


@pytest.fixture
def world(lab: Lab) -> Lab:
    lab.execute("DROP TABLE orders")
    lab.execute(NULLABLE[lab.kind])
    rows = [(1, "a", "2026-01-01 10:00:00", "2026-01-01 09:00:00"), (2, "b", None, "2026-01-01 11:00:00")]
    lab.execute("INSERT INTO orders VALUES (?, ?, ?, ?)", rows)
    return lab


def loaded(lab: Lab) -> list[tuple[int, str]]:
    assert lab.spark is not None
    found = lab.spark.read.format("delta").load(lab.table).select("id", "val").collect()
    return sorted((row[0], row[1]) for row in found)


def at_source(lab: Lab) -> list[tuple[int, str]]:
    return [(row[0], row[1]) for row in lab.source_rows()]


def test_by_default_the_run_fails_with_the_count_and_the_choices(world: Lab) -> None:
    failure = world.project(change=change()).run("orders").failure
    assert failure is not None
    assert "1 row of orders has no updated_at" in str(failure)
    hint = getattr(failure, "hint", "")
    assert all(choice in hint for choice in ("nulls: include", "coalesce", "nulls: skip"))


def test_skipped_they_are_counted(world: Lab) -> None:
    result = ok(world.project(change=change(nulls="skip")).run("orders"))
    assert loaded(world) == [(1, "a")]
    assert any("1 row of orders has no updated_at: left out" in notice for notice in result.notices)


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_included_they_come_once_and_follow_their_changes(world: Lab, mode: str) -> None:
    project = world.project(mode=mode, change=change(nulls="include", nulls_every="0s"), target=keyed(mode))
    ok(project.run("orders"))
    assert loaded(world) == [(1, "a"), (2, "b")]
    assert ok(project.run("orders")).nothing_new
    world.execute("INSERT INTO orders VALUES (?, ?, ?, ?)", [(3, "c", None, None)])
    ok(project.run("orders"))
    assert loaded(world) == [(1, "a"), (2, "b"), (3, "c")]
    world.execute("UPDATE orders SET updated_at = '2026-01-01 12:00:00', val = 'late' WHERE id = 2")
    ok(project.run("orders"))
    versions = [(1, "a"), (2, "b"), (2, "late"), (3, "c")]
    assert loaded(world) == (at_source(world) if mode == "upsert" else versions), "an append has each version"
    world.execute("UPDATE orders SET updated_at = '2026-01-01 13:00:00', val = 'again' WHERE id = 1")
    ok(project.run("orders"))
    assert loaded(world) == (at_source(world) if mode == "upsert" else [(1, "a"), (1, "again"), *versions[1:]])
    if mode == "upsert":
        world.execute("UPDATE orders SET updated_at = NULL, val = 'emptied' WHERE id = 2")
        ok(project.run("orders"))
        assert loaded(world) == at_source(world)


def test_a_full_refresh_has_them_too(pg_lab: Lab) -> None:
    pg_lab.make_nullable()
    pg_lab.execute("INSERT INTO orders VALUES (1, 'a', now()), (2, 'b', NULL)")
    project = pg_lab.project(change=change(nulls="include"))
    ok(project.run("orders"))
    ok(project.run("orders", full_refresh=True))
    assert loaded(pg_lab) == [(1, "a"), (2, "b")]


def test_append_with_included_nulls_needs_keys(pg_lab: Lab) -> None:
    with pytest.raises(ConfigError, match="keys"):
        pg_lab.project(mode="append", change=change(nulls="include"))


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_another_column_stands_in(world: Lab, mode: str) -> None:
    project = world.project(
        mode=mode, change=change(nulls="{coalesce: made}", nulls_every="0s"), target=keyed(mode), batch_rows=1
    )
    ok(project.run("orders"))
    assert loaded(world) == [(1, "a"), (2, "b")]
    world.execute("INSERT INTO orders VALUES (?, ?, ?, ?)", [(3, "c", None, "2026-01-01 12:00:00")])
    ok(project.run("orders"))
    assert loaded(world) == [(1, "a"), (2, "b"), (3, "c")]
    if mode == "upsert":
        world.execute("UPDATE orders SET updated_at = '2026-01-01 13:00:00', val = 'changed' WHERE id = 2")
        ok(project.run("orders"))
        assert loaded(world) == at_source(world)
    world.execute("INSERT INTO orders VALUES (?, ?, ?, ?)", [(4, "d", None, None)])
    assert "1 row of orders has no updated_at" in str(project.run("orders").failure)


def test_a_column_of_another_kind_can_not_stand_in(pg_lab: Lab) -> None:
    project = pg_lab.project(change=change(nulls="{coalesce: id}"))
    with pytest.raises(ConfigError, match="can't stand in"):
        project.plan("orders")


class TestCost:
    """A quiet run must not go through the whole table."""

    @pytest.fixture
    def counted(self, pg_lab: Lab) -> tuple[Lab, FaultPlan]:
        pg_lab.make_nullable()
        pg_lab.fill(3)
        return pg_lab, FaultPlan.of()

    def looks(self, lab: Lab, plan: FaultPlan, runs: int, **options: str) -> int:
        project = lab.project(plan.registry(), change=change(nulls="skip", **options))
        before = plan.calls.get("source.nulls", 0)
        for _ in range(runs):
            ok(project.run("orders"))
        project.close()
        return plan.calls.get("source.nulls", 0) - before

    def test_a_column_that_can_not_be_null_is_never_counted(self, pg_lab: Lab) -> None:
        pg_lab.fill(3)
        assert self.looks(pg_lab, FaultPlan.of(), 2) == 0

    def test_without_an_index_only_loads_count_and_quiet_runs_now_and_then(
        self, counted: tuple[Lab, FaultPlan]
    ) -> None:
        lab, plan = counted
        assert self.looks(lab, plan, 3) == 1, "with the load, and not on the two quiet runs"
        assert self.looks(lab, plan, 2, nulls_every="0s") == 2
        lab.insert((9, "new", "2026-02-01 10:00:00"))
        assert self.looks(lab, plan, 2) == 1

    def test_with_an_index_each_run_counts(self, counted: tuple[Lab, FaultPlan]) -> None:
        lab, plan = counted
        lab.execute("CREATE INDEX ON orders (updated_at)")
        assert self.looks(lab, plan, 3) == 3
