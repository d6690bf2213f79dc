"""SQLite's own ways: text as time, values of any type anywhere, one writer at a time."""

from __future__ import annotations

import os
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.lab import Lab, ok

from floodmark.errors import ConfigError
from floodmark.opening import declare
from floodmark.project import Project


@pytest.fixture
def shop(tmp_path: Path) -> sqlite3.Connection:
    return sqlite3.connect(tmp_path / "shop.db", isolation_level=None)


def project(tmp_path: Path, spark: Any, table: str, change: dict[str, Any], **target: Any) -> Project:
    mode = {"mode": "upsert", "keys": ["id"]} if "mode" not in target else {}
    return declare(
        {
            "connections": {"shop": {"type": "sqlite", "path": "shop.db"}, "lake": {"type": "delta", "path": "lake"}},
            "pipelines": {
                "p": {
                    "source": {"connection": "shop", "table": table},
                    "change": change,
                    "target": {"connection": "lake", "table": "t", **mode, **target},
                }
            },
        },
        root=tmp_path,
        spark=spark,
    )


def loaded(tmp_path: Path, spark: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.read.format("delta").load(str(tmp_path / "lake" / "t")).collect())


BY_TIME = {"by": "timestamp", "column": "u"}


@pytest.mark.parametrize(
    ("held", "late"),
    [
        ("2026-01-04T12:00:00", "2026-01-04 13:00:00"),
        ("2026-01-04 12:00:00", "2026-01-04 13:00:00Z"),
        ("2026-01-04T12:00:00.5Z", "2026-01-04T12:00:00.25Z"),
        ("2026-01-04 12:00:00", 1_800_000_000),
        ("2026-01-04 12:00:00", "2026-01-04 12:00:00.1234567"),
    ],
)
def test_another_form_of_time_is_refused_wherever_it_sorts(
    shop: sqlite3.Connection, tmp_path: Path, spark: Any, held: str, late: object
) -> None:
    shop.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, u TIMESTAMP NOT NULL)")
    shop.executemany("INSERT INTO t VALUES (?, ?)", [(1, held.replace("-04", "-01")), (2, held)])
    pipeline = project(tmp_path, spark, "t", BY_TIME)
    assert pipeline.plan("p").rows == 2
    shop.execute("INSERT INTO t VALUES (3, ?)", [late])
    result = pipeline.run("p")
    assert not result.success
    # Whichever of the two sorts higher counts as the form; the other one is named.
    assert repr(late) in result.errors[0] or repr(held.replace("-04", "-01")) in result.errors[0]
    assert "does not sort with" in result.errors[0] or "is not a time" in result.errors[0]


def test_the_mark_moves_no_further_than_the_rows(shop: sqlite3.Connection, tmp_path: Path, spark: Any) -> None:
    """With text behind the timestamp, and with a row in the future, just as without them."""
    shop.execute("CREATE TABLE t (id TEXT PRIMARY KEY NOT NULL, u TIMESTAMP NOT NULL)")
    shop.executemany(
        "INSERT INTO t VALUES (?, ?)",
        [("a", "2026-01-01 10:00:00"), ("b", "2026-01-02 10:00:00"), ("far", "2099-01-01 10:00:00")],
    )
    pipeline = project(tmp_path, spark, "t", {"by": "timestamp", "columns": ["u", "id"]})
    assert ok(pipeline.run("p")).rows.inserted == 3
    assert str(pipeline.state("p").mark) == "2026-01-02 10:00:00"  # type: ignore[union-attr]
    assert ok(pipeline.run("p")).nothing_new
    shop.execute("INSERT INTO t VALUES ('late', '2026-06-01 10:00:00')")
    assert ok(pipeline.run("p")).rows.inserted == 1


def test_values_arrive_as_declared_and_as_other_readers_see_them(
    shop: sqlite3.Connection, tmp_path: Path, spark: Any
) -> None:
    shop.execute(
        'CREATE TABLE "my.table" (id INTEGER PRIMARY KEY, m DECIMAL(18,2), r REAL, at DATETIME, ok BOOLEAN, '
        "name TEXT, twice INT GENERATED ALWAYS AS (ok * 2) VIRTUAL)"
    )
    shop.execute(
        'INSERT INTO "my.table" (id, m, r, at, ok, name) VALUES '
        "(9223372036854775807, '1234567890123456.78', 0.1, '9999-12-31 23:59:59', 1, ''), "
        "(1, 12.5, 1e300, '1850-01-01 00:00:00.000001', 0, NULL)"
    )
    pipeline = project(tmp_path, spark, "my.table", {"by": "none"}, mode="replace")
    assert ok(pipeline.run("p")).rows.inserted == 2
    first, second = loaded(tmp_path, spark)
    assert first[:3] == (1, Decimal("12.50"), 1e300)
    assert second[0] == 9223372036854775807
    # SQLite itself holds a double here and shows it with 17 digits at most.
    assert second[1] == Decimal("1234567890123456.80")
    assert (first[5], second[5], second[6]) == (None, "", 2)
    seen = DeltaTable(str(tmp_path / "lake" / "t")).to_pyarrow_table(columns=["at"]).column("at").to_pylist()
    assert sorted(str(value)[:19] for value in seen) == ["1850-01-01 00:00:00", "9999-12-31 23:59:59"]


def test_column_names_that_parquet_can_not_hold(shop: sqlite3.Connection, tmp_path: Path, spark: Any) -> None:
    shop.execute('CREATE TABLE t (id INTEGER PRIMARY KEY, "a name, quoted" TEXT, "select" TEXT)')
    shop.execute("INSERT INTO t VALUES (1, 'x', 'y')")
    pipeline = project(tmp_path, spark, "t", {"by": "sequence", "column": "id"})
    ok(pipeline.run("p"))
    shop.execute("INSERT INTO t VALUES (2, 'z', NULL)")
    ok(pipeline.run("p"))
    assert loaded(tmp_path, spark) == [(1, "x", "y"), (2, "z", None)]


def test_a_value_that_does_not_fit_is_named(shop: sqlite3.Connection, tmp_path: Path, spark: Any) -> None:
    shop.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    shop.execute("INSERT INTO t VALUES (1, 'abc')")
    result = project(tmp_path, spark, "t", {"by": "sequence", "column": "id"}, mode="append").run("p")
    assert 'column "n" of t holds abc, which is no bigint' in result.errors[0]


def test_a_read_only_file_weakens_the_guarantee_and_a_writer_in_the_middle_does_not(
    shop: sqlite3.Connection, tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, u TIMESTAMP NOT NULL)")
    shop.execute("INSERT INTO t VALUES (1, '2026-01-01 10:00:00')")
    pipeline = project(tmp_path, spark, "t", BY_TIME)
    assert str(pipeline.plan("p").guarantee) == "fenced"
    shop.execute("BEGIN IMMEDIATE")
    assert str(pipeline.plan("p").guarantee) == "fenced"
    shop.execute("ROLLBACK")
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).endswith("shop.db"))
    assert "read-only" in pipeline.plan("p").guarantee.reason


def test_a_zone_is_refused(shop: sqlite3.Connection, tmp_path: Path, spark: Any) -> None:
    shop.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, u TIMESTAMP NOT NULL)")
    with pytest.raises(ConfigError, match="SQLite keeps no zones"):
        project(tmp_path, spark, "t", {**BY_TIME, "timezone": "Europe/Berlin"}).plan("p")


def test_a_path_with_unusual_characters(sqlite_lab: Lab) -> None:
    (sqlite_lab.root / "shop.db").rename(sqlite_lab.root / "we#ird %41.db")
    path = sqlite_lab.write(mode="append")
    path.write_text(path.read_text().replace("path: shop.db", 'path: "we#ird %41.db"'))
    assert sqlite_lab.load().plan("orders").rows == 0
