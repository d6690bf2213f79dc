"""What a run costs in Spark jobs, and that it reads its source once: both grow unseen when nobody counts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import psycopg
import pytest
from tests.lab import Lab, ok
from tests.services import PostgresServer
from tests.spark_jobs import Watched, watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READ = re.compile(
    r"(?:statement|execute [^:\n]+): SELECT [^\n]*FROM \(SELECT [^\n]*(?<!WHERE 1=0)(?<!WHERE 1=0;)$", re.MULTILINE
)
"""As the server logs what Spark reads. Not the fetches that follow it, nor the question for the columns alone."""


def run(lab: Lab, spark: SparkSession, **declared: str) -> Watched:
    with watched(spark) as seen:
        ok(lab.project(**declared).run("orders"))
    print(seen)  # pytest shows it where a test fails
    return seen


def test_an_upsert_of_changed_and_new_rows(pg_lab: Lab, spark: SparkSession) -> None:
    pg_lab.fill(50)
    ok(pg_lab.project().run("orders"))
    pg_lab.execute("UPDATE orders SET val = 'other', updated_at = '2026-01-02 10:00:00' WHERE id <= 10")
    pg_lab.fill(5, at="2026-01-02 11:00:00", start=51)
    seen = run(pg_lab, spark)
    assert len(seen.jobs) <= 19, seen
    pg_lab.assert_equal()


def test_an_upsert_of_new_rows_only(pg_lab: Lab, spark: SparkSession) -> None:
    pg_lab.fill(50)
    ok(pg_lab.project().run("orders"))
    pg_lab.fill(5, at="2026-01-02 11:00:00", start=51)
    seen = run(pg_lab, spark)
    assert len(seen.jobs) <= 10, seen
    pg_lab.assert_equal()


@pytest.mark.parametrize("mode", ["upsert", "append"])
def test_nothing_new_is_no_job_at_all(pg_lab: Lab, spark: SparkSession, mode: str) -> None:
    pg_lab.fill(50)
    ok(pg_lab.project(mode=mode).run("orders"))
    assert run(pg_lab, spark, mode=mode).jobs == []


def test_an_append(pg_lab: Lab, spark: SparkSession) -> None:
    pg_lab.fill(50)
    ok(pg_lab.project(mode="append").run("orders"))
    pg_lab.fill(5, at="2026-01-02 11:00:00", start=51)
    seen = run(pg_lab, spark, mode="append")
    assert len(seen.jobs) <= 2, seen
    pg_lab.assert_equal()


@pytest.mark.parametrize("rows", [10, 3000], ids=["one-slice", "three-slices"])
def test_each_slice_is_read_once(pg_lab: Lab, postgres: PostgresServer, rows: int) -> None:
    pg_lab.fill(50)
    ok(pg_lab.project().run("orders"))
    name = pg_lab.url.rpartition("/")[2]
    with psycopg.connect(pg_lab.url, autocommit=True) as db:
        db.execute(
            "INSERT INTO orders SELECT i, 'v' || i, timestamptz '2026-01-02 10:00:00+00' + i * interval '1 second' "
            f"FROM generate_series(41, {50 + rows}) i ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at"
        )
        db.execute(f"ALTER DATABASE {name} SET log_statement = 'all'".encode())
    log = postgres.folder / "log"
    start = log.stat().st_size
    result = ok(pg_lab.project().run("orders"))
    with log.open() as lines:
        lines.seek(start)
        reads = READ.findall(lines.read())
    assert result.slices == (1 if rows == 10 else 4)
    assert len(reads) == result.slices, "\n".join(reads)
    pg_lab.assert_equal()
