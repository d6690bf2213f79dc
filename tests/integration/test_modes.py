"""Modes through the whole engine: what a run leaves in the table, and that another one changes nothing."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.lab import Lab, ok

from floodmark.errors import ConfigError
from floodmark.opening import load

DAY = "{by: timestamp, column: updated_at, delay: 0s, lookback: 1h}"


def ago(minutes: float) -> str:
    return f"{datetime.now(UTC) - timedelta(minutes=minutes):%Y-%m-%d %H:%M:%S.%f}"


def target(mode: str, more: str = "") -> str:
    return f"{{connection: lake, table: orders, mode: {mode}{more}}}"


def test_the_range_that_is_read_again_is_replaced(server_lab: Lab) -> None:
    server_lab.insert((0, "old", ago(600)), (1, "old", ago(40)), (2, "old", ago(30)))
    project = server_lab.project(change=DAY, target=target("replace_range"), batch_rows=2)
    ok(project.run_until_complete("orders"))
    server_lab.assert_equal()
    server_lab.execute("DELETE FROM orders WHERE id = 1")
    server_lab.execute("UPDATE orders SET val = 'changed' WHERE id = 2")
    server_lab.insert((8, "late", ago(45)), (9, "new", ago(2)))
    ok(project.run_until_complete("orders"))
    server_lab.assert_equal()
    project.reset("orders")
    ok(project.run_until_complete("orders"))
    server_lab.assert_equal()


def test_partitions_of_a_query(sqlite_lab: Lab) -> None:
    sqlite_lab.insert((1, "a", "2026-01-01 10:00:00"), (2, "a", "2026-01-01 11:00:00"), (3, "b", "2026-01-02 10:00:00"))
    sqlite_lab.execute("CREATE TABLE wanted (day)")
    sqlite_lab.execute("INSERT INTO wanted VALUES ('2026-01-01'), ('2026-01-02')")
    query = "SELECT *, substr(updated_at, 1, 10) AS day FROM orders WHERE day IN (SELECT day FROM wanted)"
    project = sqlite_lab.project(
        source=f'{{connection: shop, query: "{query}"}}',
        change="{by: none}",
        target=target("replace_partitions", ", partition_by: [day]"),
    )
    ok(project.run("orders"))
    sqlite_lab.assert_equal()
    sqlite_lab.execute("DELETE FROM wanted WHERE day = '2026-01-02'")
    sqlite_lab.execute("DELETE FROM orders WHERE id = 2")
    sqlite_lab.execute("UPDATE orders SET val = 'not read' WHERE id = 3")
    ok(project.run("orders"))
    assert [row[:2] for row in sqlite_lab.target_rows()] == [(1, "a"), (3, "b")]


def test_a_history(server_lab: Lab) -> None:
    server_lab.insert((1, "a", "2026-01-01 10:00:00"), (2, "a", "2026-01-01 10:00:00"))
    project = server_lab.project(target=target("history", ", keys: [id]"))
    ok(project.run("orders"))
    assert ok(project.run("orders")).nothing_new
    server_lab.execute("UPDATE orders SET val = 'b', updated_at = '2026-01-02 10:00:00' WHERE id = 1")
    server_lab.execute("UPDATE orders SET updated_at = '2026-01-02 10:00:00' WHERE id = 2")
    ok(project.run("orders"))
    expected = [(1, "a", 1, 2, False), (1, "b", 2, None, True), (2, "a", 1, None, True)]
    assert versions(server_lab) == expected
    ok(project.backfill("orders"))
    project.reset("orders")
    ok(project.run("orders"))
    assert versions(server_lab) == expected


def versions(lab: Lab) -> list[tuple[Any, ...]]:
    """With days for moments."""
    assert lab.spark is not None
    found = lab.spark.read.format("delta").load(lab.table)
    return sorted(
        (
            tuple(row)
            for row in found.selectExpr("id", "val", "day(valid_from)", "day(valid_to)", "is_current").collect()
        ),
        key=lambda row: row[:3],
    )


@pytest.mark.parametrize(
    ("change", "declared", "said"),
    [
        ("{by: none}", target("replace_range"), "no range to replace"),
        ("{by: sequence, column: id}", target("replace_partitions", ", partition_by: [id]"), "only some of their rows"),
        ("{by: none}", target("replace_partitions"), "needs `partition_by`"),
        ("{by: sequence, column: id}", target("history"), "needs `keys`"),
        ("{by: sequence, columns: [id, val]}", target("history", ", keys: [id]"), "one cursor column"),
        ("{by: sequence, column: id, nulls: include}", target("history", ", keys: [id]"), "without a cursor value"),
        ("{by: none}", target("history", ", keys: [id], history: {valid_from: x, valid_to: X}"), "three names"),
    ],
)
def test_what_does_not_go_together_is_refused_offline(sqlite_lab: Lab, change: str, declared: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        load(sqlite_lab.write(change=change, target=declared))


def test_a_column_that_the_history_has_itself_is_told_by_the_plan(sqlite_lab: Lab) -> None:
    sqlite_lab.execute("ALTER TABLE orders ADD COLUMN valid_to TEXT")
    with pytest.raises(ConfigError, match="the history keeps a column of this name itself"):
        sqlite_lab.project(target=target("history", ", keys: [id]")).plan("orders")
    other = target("history", ", keys: [id], history: {valid_to: until}")
    assert sqlite_lab.project(target=other).plan("orders").first


@pytest.mark.parametrize(
    ("lake", "option"),
    [
        ("{type: sqlite, path: other.db}", "partition_by"),
        ("{type: duckdb, path: other.duckdb}", "cluster_by"),
        ("{type: parquet, path: lake}", "cluster_by"),
    ],
)
def test_a_layout_that_a_target_lacks_is_refused(sqlite_lab: Lab, lake: str, option: str) -> None:
    sqlite_lab.lake = lake
    with pytest.raises(ConfigError, match=f"has no `{option}`"):
        sqlite_lab.project(target=target("upsert", f", keys: [id], {option}: [val]")).plan("orders")
