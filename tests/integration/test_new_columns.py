"""`new_columns: backfill`: a column that is new in the source is there for the rows of before, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.iceberg import table_at
from tests.lab import Kind, Lab, ok
from tests.warehouse import WarehouseLab

from floodmark import parquet_table
from floodmark.errors import ConfigError
from floodmark.opening import load
from floodmark.testing.faults import FaultPlan

BY_TIME = "{by: timestamp, column: updated_at, delay: 0s}"
MODES = {
    "append": ("{by: sequence, column: id, delay: 0s}", "append"),
    "upsert": (BY_TIME, "upsert, keys: [id]"),
    "history": (BY_TIME, "history, keys: [id]"),
}


def declared(mode: str) -> dict[str, Any]:
    change, own = MODES[mode]
    target = f"{{connection: lake, table: orders, mode: {own}, new_columns: backfill}}"
    return {"change": change, "target": target, "batch_rows": 2}


def prepared(lab: Lab) -> None:
    lab.insert(*((i, f"v{i}", f"2026-01-0{i} 10:00:00") for i in range(1, 6)))


def with_column(lab: Lab) -> None:
    lab.execute("ALTER TABLE orders ADD COLUMN size int DEFAULT 7")


def sizes(lab: Lab) -> list[tuple[Any, ...]]:
    assert lab.spark is not None
    found = lab.spark.read.format("delta").load(lab.table).select("id", "size").collect()
    return sorted(tuple(row) for row in found)


FILLED = [(i, 7) for i in range(1, 6)]


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_before_are_filled(pg_lab: Lab, mode: str) -> None:
    prepared(pg_lab)
    project = pg_lab.project(**declared(mode))
    ok(project.run_until_complete("orders"))
    mark = project.state("orders").mark  # type: ignore[union-attr]
    with_column(pg_lab)
    assert ok(project.run("orders")).nothing_new is False
    assert sizes(pg_lab) == FILLED
    pg_lab.assert_equal()
    state = project.state("orders")
    assert state is not None
    assert (state.unfilled, state.mark) == ((), mark)
    assert ok(project.run("orders")).nothing_new
    pg_lab.execute("INSERT INTO orders VALUES (6, 'v6', '2026-01-06 10:00:00', 8)")
    ok(project.run("orders"))
    assert sizes(pg_lab) == [*FILLED, (6, 8)]


@pytest.mark.parametrize("fault", ["target.load:after=error", "target.load#2:before=error"])
def test_a_run_that_fails_on_the_way_leaves_it_to_the_next(pg_lab: Lab, fault: str) -> None:
    prepared(pg_lab)
    ok(pg_lab.project(**declared("upsert")).run_until_complete("orders"))
    with_column(pg_lab)
    pg_lab.project(FaultPlan.of(fault).registry(), **declared("upsert"), retries="{attempts: 1}").run("orders")
    ok(pg_lab.project(**declared("upsert")).run("orders"))
    assert sizes(pg_lab) == FILLED


@pytest.mark.parametrize(("kind", "database"), [("postgres", "pg_db"), ("mariadb", "my_db")])
def test_in_a_database(tmp_path: Path, kind: Kind, database: str, request: pytest.FixtureRequest) -> None:
    url, spark = request.getfixturevalue(database), request.getfixturevalue("spark")
    lab = WarehouseLab(tmp_path / "project", kind, url, spark, warehouse=url)
    prepared(lab)
    target = "{connection: lake, table: copies, mode: upsert, keys: [id], new_columns: backfill}"
    project = lab.project(change=BY_TIME, target=target)
    ok(project.run("orders"))
    with_column(lab)
    ok(project.run("orders"))
    assert sorted(lab.ask("SELECT id, size FROM copies")) == FILLED


def in_iceberg(lab: Lab) -> list[tuple[Any, ...]]:
    rows = table_at(lab.root / "lake" / "default" / "orders").scan().to_arrow().to_pylist()
    return sorted((row["id"], row["size"]) for row in rows)


def in_parquet(lab: Lab) -> list[tuple[Any, ...]]:
    files = ", ".join(f"'{file}'" for file in parquet_table(str(lab.root / "lake" / "orders")).files)
    with duckdb.connect() as db:
        return sorted(db.execute(f"SELECT id, size FROM read_parquet([{files}], union_by_name = true)").fetchall())


def in_duckdb(lab: Lab) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(lab.root / "lake.duckdb"), read_only=True) as db:
        return sorted(db.execute("SELECT id, size FROM orders").fetchall())


@pytest.mark.parametrize(
    ("lake", "found"),
    [
        ("{type: iceberg, path: lake}", in_iceberg),
        ("{type: parquet, path: lake}", in_parquet),
        ("{type: duckdb, path: lake.duckdb}", in_duckdb),
    ],
)
def test_in_other_lakes_and_files(sqlite_lab: Lab, lake: str, found: Callable[[Lab], list[tuple[Any, ...]]]) -> None:
    sqlite_lab.lake = lake
    prepared(sqlite_lab)
    project = sqlite_lab.project(**declared("upsert"))
    ok(project.run("orders"))
    with_column(sqlite_lab)
    ok(project.run("orders"))
    assert found(sqlite_lab) == FILLED


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"transform": '{sql: "select * from source"}'}, "which a transform makes"),
        (
            {"target": "{connection: lake, table: o, mode: append, new_columns: backfill, schema_changes: freeze}"},
            "evolve",
        ),
    ],
)
def test_where_nobody_could_tell_it_is_refused(sqlite_lab: Lab, more: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load(sqlite_lab.write(**{**declared("append"), **more}))
