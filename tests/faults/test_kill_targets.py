"""SIGKILL of a real process in the middle of a load into a database, then one ordinary run: target equals source."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from tests.killed_inside import run_killed
from tests.lab import Kind, Lab, ok
from tests.services import run_faulty
from tests.warehouse import WarehouseLab

from floodmark.errors import TargetError
from floodmark.project import Project
from floodmark.targets.parquet.reader import parquet_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("mode", "step"),
    [
        ("append", "store.save:after=kill"),
        ("upsert", "target.load:before=kill@3"),
        ("append", "target.load#2:after=kill"),
        ("upsert", "store.save#2:before=kill"),
    ],
)
def test_killed_while_loading_into_postgres_and_run_again(
    tmp_path: Path, pg_db: str, spark: SparkSession, mode: str, step: str
) -> None:
    assert_killed_and_mended(WarehouseLab(tmp_path / "project", "postgres", pg_db, spark, warehouse=pg_db), mode, step)


STAGED = "floodmark.targets.postgres.target:stage"
PROMOTED = "floodmark.targets.database.heads:Heads.count"
"""The last statement before the commit."""


@pytest.mark.parametrize(
    ("kind", "mode", "place"),
    [
        ("postgres", "upsert", STAGED),
        ("postgres", "append", PROMOTED),
        ("postgres", "upsert", PROMOTED),
        ("mariadb", "append", PROMOTED),
        ("mariadb", "upsert", PROMOTED),
    ],
)
def test_killed_before_the_commit_into_a_database_and_run_again(
    tmp_path: Path, request: pytest.FixtureRequest, spark: SparkSession, kind: Kind, mode: str, place: str
) -> None:
    """The table holds rows already, some of which have changed since."""
    url = request.getfixturevalue({"postgres": "pg_db", "mariadb": "my_db"}[kind])
    lab = WarehouseLab(tmp_path / "project", kind, url, spark, warehouse=url)
    lab.series(20, "2026-01-01 10:00:00", "1 second")
    project = lab.project(mode=mode)
    ok(project.run("orders"))
    before = lab.target_rows()
    if mode == "upsert":
        lab.execute("UPDATE orders SET val = 'other', updated_at = '2026-01-02 10:00:00' WHERE id <= 5")
    lab.fill(5, at="2026-01-02 10:00:00", start=21)
    run_killed(place, "run", "orders", cwd=lab.root)
    assert lab.target_rows() == before
    assert len(lab.leftovers()) > 0
    assert_mended(lab, project)


def assert_killed_and_mended(lab: WarehouseLab, mode: str, step: str) -> None:
    lab.series(30, "2026-01-01 10:00:00", "1 second")
    lab.write(mode=mode, batch_rows=10)
    killed = run_faulty(step, "run", "orders", cwd=lab.root)
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    assert_mended(lab, lab.project(mode=mode, batch_rows=10))


def assert_mended(lab: WarehouseLab, project: Project) -> None:
    ok(project.run("orders"))
    lab.assert_equal()
    assert ok(project.run("orders")).nothing_new
    assert lab.leftovers() == []
    ordinals = [number for (number,) in lab.ask("SELECT ordinal FROM floodmark_heads ORDER BY 1")]
    assert ordinals == sorted(set(ordinals))


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_killed_between_staging_and_commit_into_a_file_and_run_again(
    tmp_path: Path, spark: SparkSession, kind: str
) -> None:
    lab = Lab(tmp_path / "project", "sqlite", "", spark, lake=f"{{type: {kind}, path: warehouse.db}}")
    lab.fill(30)
    lab.write(mode="append", batch_rows=10)
    run_killed("floodmark.targets.database.promote:Promotion.run", "run", "orders", cwd=lab.root)
    project = lab.project(mode="append", batch_rows=10)
    assert ok(project.run("orders")).rows.inserted == 30
    assert ok(project.run("orders")).nothing_new
    assert rows_in(kind, lab.root / "warehouse.db") == [(i, f"v{i}") for i in range(1, 31)]
    assert [name for name in os.listdir(lab.root) if "warehouse" in name] == ["warehouse.db"]


def test_killed_between_the_files_and_the_manifest_and_run_again(tmp_path: Path, spark: SparkSession) -> None:
    lab = Lab(tmp_path / "project", "sqlite", "", spark, lake="{type: parquet, path: files}")
    lab.fill(30)
    lab.write(mode="append", batch_rows=10)
    run_killed("floodmark.targets.parquet.target:ParquetTarget._written", "run", "orders", cwd=lab.root)
    table = lab.root / "files" / "orders"
    (dead,) = os.listdir(table / "data")
    with pytest.raises(TargetError, match="there is no table"):
        parquet_table(table)
    project = lab.project(mode="append", batch_rows=10)
    assert ok(project.run("orders")).rows.inserted == 30
    assert ok(project.run("orders")).nothing_new
    found = spark.read.parquet(*parquet_table(table).files).select("id").collect()
    assert sorted(row.id for row in found) == list(range(1, 31))
    assert dead not in os.listdir(table / "data")


def rows_in(kind: str, path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path) if kind == "sqlite" else duckdb.connect(path)) as db:
        return db.execute("SELECT id, val FROM orders ORDER BY id").fetchall()
