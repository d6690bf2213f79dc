"""Values that an application fills in late are found again, merged or replaced, and a quiet source stays quiet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from deltalake import DeltaTable
from tests.lab import Lab, ok

from floodmark.errors import ConfigError


def ago(minutes: float) -> str:
    return f"{datetime.now(UTC) - timedelta(minutes=minutes):%Y-%m-%d %H:%M:%S.%f}"


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_late_values_within_the_lookback_are_found(server_lab: Lab, mode: str) -> None:
    change = "{by: timestamp, column: updated_at, delay: 0s, lookback: 1h}"
    server_lab.insert((1, "old", ago(600)), (2, "a", ago(50)), (3, "b", ago(10)))
    project = server_lab.project(mode=mode, change=change)
    ok(project.run("orders"))
    assert ok(project.run("orders")).nothing_new, "read again, and recognised"
    server_lab.insert((4, "late", ago(40)), (5, "new", ago(2)))
    if mode == "append":
        server_lab.execute("UPDATE orders SET val = 'changed' WHERE id = 2")
        server_lab.execute("DELETE FROM orders WHERE id = 3")
    version = DeltaTable(server_lab.table).version()
    ok(project.run("orders"))
    assert DeltaTable(server_lab.table).version() == version + 1, "replaced in one commit"
    server_lab.assert_equal()
    assert ok(project.run("orders")).nothing_new


def test_a_sequence_looks_back_by_numbers(server_lab: Lab) -> None:
    project = server_lab.project(mode="append", change="{by: sequence, column: id, delay: 0s, lookback: 10}")
    server_lab.fill(20)
    server_lab.execute("DELETE FROM orders WHERE id = 15")
    ok(project.run("orders"))
    server_lab.insert((15, "late", ago(1)), (21, "new", ago(1)))
    ok(project.run("orders"))
    server_lab.assert_equal()
    server_lab.insert((25, "new", ago(1)), (-3, "much too late", ago(1)))
    ok(project.run("orders"))
    assert len(server_lab.target_rows()) == len(server_lab.source_rows()) - 1, "what lies deeper is not looked for"


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_first_load_in_slices_and_then_late_rows(pg_lab: Lab, mode: str) -> None:
    change = "{by: sequence, column: id, delay: 0s, lookback: 25}"
    project = pg_lab.project(mode=mode, change=change, batch_rows=10)
    pg_lab.series(60, "2026-01-01 10:00:00", "1 second")
    pg_lab.execute("DELETE FROM orders WHERE id IN (40, 50)")
    ok(project.run("orders"))
    pg_lab.assert_equal()
    pg_lab.insert((40, "late", ago(1)), (50, "late", ago(1)), *((i, "new", ago(1)) for i in range(61, 85)))
    ok(project.run("orders"))
    pg_lab.assert_equal()


def test_text_can_not_be_counted_back(pg_lab: Lab) -> None:
    project = pg_lab.project(mode="append", change="{by: sequence, column: val, lookback: 10}")
    with pytest.raises(ConfigError, match="counts back from a number"):
        project.plan("orders")
