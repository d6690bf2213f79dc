"""A SQLite file as the target: one writer, one transaction, nothing left beside the file."""

from __future__ import annotations

import os
import sqlite3
from contextlib import AbstractContextManager, closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.lab import Lab, load_after_load, ok

from floodmark.connections.sqlite import SqliteConnection
from floodmark.errors import TargetError
from floodmark.opening import load
from floodmark.targets.database import parquet
from floodmark.targets.sqlite.target import SqliteSession, SqliteTarget
from floodmark.testing.target_suite import AT, a_load, a_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAKE = "{type: sqlite, path: out/warehouse.db}"


@pytest.fixture
def lab(tmp_path: Path, spark: SparkSession) -> Lab:
    lab = Lab(tmp_path / "a project", "sqlite", "", spark, lake=LAKE)
    (lab.root / "out").mkdir()
    return lab


def ask(lab: Lab, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(lab.root / "out" / "warehouse.db", isolation_level=None)) as db:
        return db.execute(statement).fetchall()


def copies(lab: Lab) -> list[tuple[Any, ...]]:
    return ask(lab, "SELECT id, val FROM orders ORDER BY id")


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_load_after_load_and_the_state_rebuilt_from_the_file(
    lab: Lab, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "AT_ONCE", 4)
    load_after_load(lab, mode)
    assert copies(lab) == [(i, f"v{i}") for i in range(1, 36)]
    assert os.listdir(lab.root / "out") == ["warehouse.db"]


def test_a_load_that_fails_changes_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.fill(3)
    project = lab.project()
    ok(project.run("orders"))
    ask(lab, "CREATE TRIGGER no AFTER INSERT ON orders WHEN new.id > 4 BEGIN SELECT raise(ABORT, 'not that one'); END")
    lab.execute("UPDATE orders SET val = 'other', updated_at = '2026-01-02 10:00:00' WHERE id = 1")
    lab.fill(3, at="2026-01-02 10:00:00", start=4)
    assert "not that one" in project.run("orders").errors[0]
    assert copies(lab) == [(1, "v1"), (2, "v2"), (3, "v3")]
    ask(lab, "DROP TRIGGER no")
    ok(project.run("orders"))
    assert copies(lab) == [(1, "other"), *((i, f"v{i}") for i in range(2, 7))]


def test_a_file_that_somebody_holds_is_waited_for_and_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floodmark.targets.sqlite.target.LOCK_WAIT", 0.1)
    lab.fill(3)
    project = lab.project(retries="{attempts: 1}")
    ok(project.run("orders"))
    lab.fill(1, at="2026-01-02 10:00:00", start=4)
    with closing(sqlite3.connect(lab.root / "out" / "warehouse.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "database is locked" in project.run("orders").errors[0]
        other.execute("ROLLBACK")
    ok(project.run("orders"))
    assert len(copies(lab)) == 4


def test_nan_and_types_that_would_have_to_change_are_refused_by_name(lab: Lab) -> None:
    lab.fill(1)
    nan = lab.project(transform="{sql: \"select *, double('NaN') as share from source\"}").run("orders")
    assert 'column "share" holds NaN' in nan.errors[0]
    ok(lab.project(transform='{sql: "select *, 1 as n from source"}').run("orders"))
    lab.fill(1, at="2026-01-02 10:00:00", start=2)
    other = lab.project(transform='{sql: "select *, 0.5D as n from source"}').run("orders")
    assert "n was bigint and is double" in other.errors[0] or "can't change the type" in other.errors[0]


def test_a_folder_that_is_not_there_is_told_before_anything_is_read(lab: Lab) -> None:
    lab.fill(1)
    lab.lake = "{type: sqlite, path: nowhere/warehouse.db}"
    with pytest.raises(TargetError, match="there is no folder"):
        load(lab.write()).plan("orders")


def test_a_plan_makes_no_file(lab: Lab) -> None:
    lab.fill(1)
    load(lab.write()).plan("orders")
    assert os.listdir(lab.root / "out") == []


@pytest.mark.parametrize("by", ["sequence", "none"])
def test_the_cost_of_versions_grows_with_their_number_and_not_its_square(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    steps: list[int] = []
    begin = SqliteSession.transaction

    def counted(session: SqliteSession) -> AbstractContextManager[None]:
        session.db.set_progress_handler(lambda: steps.append(1), 1000)
        return begin(session)

    monkeypatch.setattr(SqliteSession, "transaction", counted)

    def cost(rows: int) -> int:
        spec = a_spec("history", f"copies_{rows}", by=by)
        target = SqliteTarget(SqliteConnection(path="costs.db"), spec, tmp_path)
        for ordinal in (1, 2):
            steps.clear()
            batch = spark.range(rows).selectExpr("id", f"'{ordinal}' AS val", f"{ordinal}L AS seq")
            assert target.load(spark, batch, a_load(spec, ordinal, at=AT + timedelta(hours=ordinal))) is not None
        return len(steps)

    assert cost(4000) < 8 * cost(1000)
