"""A DuckDB file as the target: one writer, one transaction, nothing left beside the file."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from tests.lab import Lab, load_after_load, ok

from floodmark.connections.duckdb import DuckdbConnection
from floodmark.errors import ConfigError, TargetError
from floodmark.model.position import Position
from floodmark.opening import load
from floodmark.targets.duckdb.target import DuckdbTarget
from floodmark.testing.target_suite import a_load, a_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAKE = "{type: duckdb, path: out/warehouse.duckdb}"
HOLD = "import duckdb, sys; db = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"


@pytest.fixture
def lab(tmp_path: Path, spark: SparkSession) -> Lab:
    lab = Lab(tmp_path / "project [1]", "sqlite", "", spark, lake=LAKE)
    (lab.root / "out").mkdir()
    return lab


def ask(lab: Lab, statement: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(lab.root / "out" / "warehouse.duckdb") as db:
        return db.execute(statement).fetchall()


def copies(lab: Lab) -> list[tuple[Any, ...]]:
    return ask(lab, "SELECT id, val FROM orders ORDER BY id")


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_load_after_load_and_the_state_rebuilt_from_the_file(lab: Lab, mode: str) -> None:
    load_after_load(lab, mode)
    assert copies(lab) == [(i, f"v{i}") for i in range(1, 36)]
    assert os.listdir(lab.root / "out") == ["warehouse.duckdb"]


def test_a_key_that_changes_in_load_after_load_and_a_table_made_anew(lab: Lab) -> None:
    lab.fill(3)
    project = lab.project()
    ok(project.run("orders"))
    for day in (2, 3):
        lab.execute(f"UPDATE orders SET val = 'v{day}', updated_at = '2026-01-0{day} 10:00:00' WHERE id = 1")
        assert ok(project.run("orders")).rows.updated == 1
    ok(project.run("orders", full_refresh=True))
    assert copies(lab) == [(1, "v3"), (2, "v2"), (3, "v3")]


def test_a_version_that_the_source_no_longer_says_goes(lab: Lab) -> None:
    """The row is as it was, and since an earlier day. Its times are read nowhere: DuckDB gives them out to Python only
    with a package that nobody needs to have."""
    lab.fill(2, at="2026-01-03 10:00:00")
    target = "{connection: lake, table: orders, mode: history, keys: [id]}"
    project = lab.project(target=target, change="{by: timestamp, column: updated_at, delay: 0s, lookback: 3650d}")
    ok(project.run("orders"))
    lab.execute("UPDATE orders SET updated_at = '2026-01-02 10:00:00' WHERE id = 1")
    assert ok(project.run("orders")).rows.deleted == 1
    found = ask(lab, "SELECT id, val, (valid_from::VARCHAR)[:10], is_current FROM orders ORDER BY id")
    assert found == [(1, "v1", "2026-01-02", True), (2, "v2", "2026-01-03", True)]


def test_a_load_that_fails_changes_nothing(lab: Lab) -> None:
    ask(lab, "CREATE TABLE orders (id BIGINT, val VARCHAR CHECK (val <> 'v5'), updated_at TIMESTAMPTZ)")
    lab.fill(3)
    project = lab.project()
    ok(project.run("orders"))
    lab.execute("UPDATE orders SET val = 'other', updated_at = '2026-01-02 10:00:00' WHERE id = 1")
    lab.fill(3, at="2026-01-02 10:00:00", start=4)
    assert "warehouse.duckdb: Constraint Error" in project.run("orders").errors[0]
    assert copies(lab) == [(1, "v1"), (2, "v2"), (3, "v3")]
    assert os.listdir(lab.root / "out") == ["warehouse.duckdb"]


def test_a_schema_of_its_own_and_values_that_are_nested(lab: Lab) -> None:
    lab.fill(1)
    target = "{connection: lake, table: raw.orders, mode: upsert, keys: [id]}"
    ok(lab.project(target=target, transform='{sql: "select *, array(1, 2) as parts from source"}').run("orders"))
    assert ask(lab, "SELECT parts->>'$[1]' FROM raw.orders") == [("2",)]
    kinds = dict(ask(lab, "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'orders'"))
    assert kinds == {"id": "BIGINT", "val": "VARCHAR", "updated_at": "TIMESTAMP WITH TIME ZONE", "parts": "JSON"}


def test_a_key_column_that_grows(lab: Lab) -> None:
    lab.fill(1)
    small = lab.project(transform='{sql: "select int(id) as id, val, updated_at from source"}')
    ok(small.run("orders"))
    lab.fill(1, at="2026-01-02 10:00:00", start=2**40)
    ok(lab.project().run("orders"))
    assert copies(lab) == [(1, "v1"), (2**40, f"v{2**40}")]


def test_a_file_that_another_process_holds_is_told_and_a_moment_later_it_works(lab: Lab) -> None:
    lab.fill(3)
    project = lab.project(retries="{attempts: 1}")
    ok(project.run("orders"))
    lab.fill(1, at="2026-01-02 10:00:00", start=4)
    path = lab.root / "out" / "warehouse.duckdb"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        held = project.run("orders")
        assert isinstance(held.failure, TargetError)
        assert held.failure.transient
        assert "warehouse.duckdb is open elsewhere" in held.errors[0]
        other.communicate("")
    ok(project.run("orders"))
    assert len(copies(lab)) == 4


def test_the_file_is_looked_at_while_this_process_has_it_open(lab: Lab) -> None:
    lab.fill(1)
    project = lab.project()
    ok(project.run("orders"))
    with duckdb.connect(lab.root / "out" / "warehouse.duckdb"):
        assert ok(project.run("orders")).nothing_new


def test_composite_cursors_and_values_that_are_missing(tmp_path: Path, spark: SparkSession) -> None:
    target = DuckdbTarget(DuckdbConnection(path="w.duckdb"), a_spec("upsert"), tmp_path)

    def put(ordinal: int, *rows: tuple[Any, ...], **asked: Any) -> None:
        frame = spark.createDataFrame(list(rows), "id bigint, val string, a bigint, b bigint")
        target.load(spark, frame, replace(a_load(a_spec("upsert"), ordinal, **asked), cursor=("a", "b")))

    def rows() -> list[tuple[Any, ...]]:
        with duckdb.connect(tmp_path / "w.duckdb") as db:
            return db.execute("SELECT id, val FROM orders ORDER BY id").fetchall()

    put(1, (1, "old", None, 1), (2, "old", 5, 5), (3, "old", 5, 5), (4, "old", 5, None))
    put(2, (1, "known", 1, 1), (2, "older", 5, 4), (3, "newer", 5, 6), (4, "newer", 6, 1))
    assert rows() == [(1, "known"), (2, "old"), (3, "newer"), (4, "newer")]
    put(3, (5, "without", None, None))
    put(4, (6, "new", 5, 6), replaces=True, after=Position((5, 6)), until=None)
    assert rows() == [(1, "known"), (2, "old"), (5, "without"), (6, "new")]


def test_a_folder_that_is_not_there_is_told_before_anything_is_read(lab: Lab) -> None:
    lab.fill(1)
    lab.lake = "{type: duckdb, path: nowhere/warehouse.duckdb}"
    with pytest.raises(TargetError, match="there is no folder"):
        load(lab.write()).plan("orders")


def test_a_file_that_is_something_else_is_told_before_anything_is_read(lab: Lab) -> None:
    lab.fill(1)
    (lab.root / "out" / "warehouse.duckdb").write_text("not a database")
    with pytest.raises(TargetError, match="not a valid DuckDB database file"):
        load(lab.write()).plan("orders")


def test_a_name_of_three_parts_is_refused(lab: Lab) -> None:
    with pytest.raises(ConfigError, match="not the name of a table"):
        load(lab.write(target="{connection: lake, table: a.b.c, mode: append}", mode="append")).plan("orders")


def test_a_plan_makes_no_file(lab: Lab) -> None:
    lab.fill(1)
    load(lab.write()).plan("orders")
    assert os.listdir(lab.root / "out") == []


def test_what_dead_runs_left_goes_with_the_next_load_and_not_what_others_stage(lab: Lab) -> None:
    lab.fill(1)
    project = lab.project()
    ok(project.run("orders"))
    ours, others = (sha256(table.encode()).hexdigest()[:8] for table in ('"main"."orders"', '"main"."items"'))
    for table in (ours, others):
        (lab.root / "out" / f".warehouse.duckdb.floodmark-{table}-1").mkdir()
    lab.fill(1, at="2026-01-02 10:00:00", start=2)
    ok(project.run("orders"))
    assert sorted(os.listdir(lab.root / "out")) == [f".warehouse.duckdb.floodmark-{others}-1", "warehouse.duckdb"]


def test_a_folder_that_can_not_be_written_to_is_told_before_anything_is_read(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.fill(1)
    # As root, everything may be written to.
    monkeypatch.setattr("os.access", lambda path, _: not str(path).endswith("out"))
    with pytest.raises(TargetError, match="out can't be written to"):
        load(lab.write()).plan("orders")
