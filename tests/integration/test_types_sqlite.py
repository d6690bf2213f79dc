"""SQLite lets any value into any column: each arrives with its value, or is refused by name."""
# ruff: noqa: E501 - a table: one line per value reads better than six

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from tests.lab import ok
from tests.type_lab import PAGE, Case, Catalogue, Refusal, assert_others_read_the_same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = (
    Case("INTEGER", "-9223372036854775808", "bigint", "-9223372036854775808"),
    Case("BIGINT", "9223372036854775807", "bigint", "9223372036854775807"),
    Case("INT", "'12'", "bigint", "12", "SQLite makes a number of it"),
    Case("REAL", "0.1", "double", "0.1"),
    Case("REAL", "0.1 + 0.2", "double", "0.30000000000000004"),
    Case("REAL", "9e999", "double", "Infinity"),
    Case("NUMERIC", "9007199254740992", "double", "9.007199254740992E15"),
    Case("DECIMAL(10,2)", "12.5", "decimal(10,2)", "12.50"),
    Case("DECIMAL(10,2)", "0.1 + 0.2", "decimal(10,2)", "0.30", "digits beyond the 15th are how SQLite stores a real"),
    Case("DECIMAL(18,2)", "'1234567890123456.78'", "decimal(18,2)", "1234567890123456.80", "SQLite itself holds a real here"),
    Case("DECIMAL(50,10)", "1.5", "string", "1.5", "more digits than Spark has (38)"),
    Case("BOOLEAN", "1", "boolean", "true"),
    Case("BOOLEAN", "'true'", "boolean", "true"),
    Case("BOOLEAN", "'no'", "boolean", "false"),
    Case("TEXT", "'🌊 é \" '''", "string", "🌊 é \" '"),
    Case("TEXT", "''", "string", "", "an empty text is not NULL"),
    Case("TEXT", "char(65533)", "string", "\ufffd"),
    Case("VARCHAR(2)", "'long'", "string", "long", "SQLite keeps to no length"),
    Case("TEXT", "0.1", "string", "0.1"),
    Case("ANY", "9007199254740993", "string", "9007199254740993", "no type at all: as text"),
    Case("JSON", "'{\"a\": 1.10}'", "string", '{"a": 1.10}'),
    Case("BLOB", "x'00ff10'", "binary", "00FF10"),
    Case("BLOB", "'é'", "binary", "C3A9", "the text's bytes"),
    Case("DATE", "'2026-11-15'", "date", "2026-11-15"),
    Case("DATE", "'1500-02-28'", "date", "1500-02-28"),
    Case("DATETIME", "'2026-11-15 10:00:00.123456'", "timestamp", "2026-11-15 10:00:00.123456", "without an offset it counts as UTC"),
    Case("DATETIME", "'2026-11-15T10:00:00+02:00'", "timestamp", "2026-11-15 08:00:00"),
    Case("DATETIME", "'2026-11-15'", "timestamp", "2026-11-15 00:00:00"),
    Case("TIMESTAMP", "'1500-02-28 23:59:59.999999'", "timestamp", "1500-02-28 23:59:59.999999"),
    Case("TIMESTAMP", "'0001-01-01 00:00:00'", "timestamp", "0001-01-01 00:00:00"),
    Case("TIMESTAMP", "'9999-12-31 23:59:59.999999'", "timestamp", "9999-12-31 23:59:59.999999"),
)  # fmt: skip

REFUSALS = (
    Refusal("TEXT", "x'ff00'", "the BLOB FF00, which is no text", "declare the column BLOB"),
    Refusal("TEXT", "CAST(x'61ff' AS TEXT)", "a\ufffd, which is not UTF-8", "bytes that are no text"),
    Refusal("INTEGER", "'abc'", "abc, which is no bigint"),
    Refusal("INTEGER", "1.5", "1.5, which is no bigint"),
    Refusal("INTEGER", "9223372036854775808", "9.2233720368547758e+18, which is no bigint", "SQLite holds a real here"),
    Refusal("NUMERIC", "9007199254740993", "9007199254740993, which is no double", "a double has 53 bits"),
    Refusal("NUMERIC", "9223372036854775807", "9223372036854775807, which is no double"),
    Refusal("REAL", "x'00'", "the BLOB 00, which is no double"),
    Refusal("DECIMAL(10,2)", "12.505", "12.505, which is no decimal(10,2)", "it would be rounded"),
    Refusal("DECIMAL(5,2)", "123456", "123456, which is no decimal(5,2)"),
    Refusal("BOOLEAN", "2", "2, which is no boolean"),
    Refusal("BLOB", "5", "5, which is no binary"),
    Refusal("DATE", "'2026'", "2026, which is no date", "a year alone"),
    Refusal("DATE", "'2026-11-15 10:00:00'", "2026-11-15 10:00:00, which is no date", "its time would be lost"),
    Refusal("DATE", "2461000.5", "2461000.5, which is no date", "a Julian day"),
    Refusal("DATETIME", "1700000000", "1700000000, which is no timestamp", "declare epochs INTEGER"),
    Refusal("DATETIME", "'10:00:00'", "10:00:00, which is no timestamp", "on which day?"),
    Refusal("DATETIME", "'2026-01-01 10:00:00.1234567'", "2026-01-01 10:00:00.1234567, which is no timestamp", "Spark has microseconds"),
    Refusal("DATETIME", "'2026-02-30 10:00:00'", "2026-02-30 10:00:00, which is no timestamp"),
)  # fmt: skip


def catalogue(folder: Path) -> Catalogue:
    def execute(statement: str) -> None:
        with sqlite3.connect(folder / "shop.db") as db:
            db.execute(statement)
        db.close()

    return Catalogue("SQLite", {"type": "sqlite", "path": "shop.db"}, CASES, REFUSALS, execute)


def test_each_value_arrives(tmp_path: Path, spark: SparkSession) -> None:
    known = catalogue(tmp_path)
    seen = known.observe(tmp_path, spark)
    for case, kind, value in seen:
        assert (case.declared, kind, value) == (case.declared, case.arrives, case.value)
    assert_others_read_the_same(tmp_path, spark)
    assert known.section(seen) in PAGE.read_text(), "run: python scripts/write_types.py"


def test_what_can_not_arrive_is_refused_by_name(tmp_path: Path, spark: SparkSession) -> None:
    for wanted, said in catalogue(tmp_path).refused(tmp_path, spark):
        assert said.startswith(wanted)
        assert "(the row with id = 1); leave the column out" in said


def test_a_refusal_stops_the_run_unless_the_column_is_left_out(tmp_path: Path, spark: SparkSession) -> None:
    known = catalogue(tmp_path)
    known.create("odd", REFUSALS)
    result = known.project(tmp_path, spark, "odd").run("types")
    assert not result.success
    assert 'column "c0" of odd holds the BLOB FF00' in result.errors[0]
    project = known.project(tmp_path, spark, "odd", transform={"sql": "SELECT id FROM source"})
    assert ok(project.run("types", full_refresh=True)).rows.inserted == 2


def test_a_character_of_no_length_is_kept(tmp_path: Path, spark: SparkSession) -> None:
    known = catalogue(tmp_path)
    known.create("types", [Case("TEXT", "'a' || char(0) || 'b'", "string", "")])
    ok(known.project(tmp_path, spark, "types").run("types"))
    loaded = spark.read.format("delta").load(str(tmp_path / "lake" / "types")).where("id = 1")
    assert loaded.collect()[0]["c0"] == "a\0b"
