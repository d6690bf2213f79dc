"""Behind a JDBC driver, too, each value arrives as it is or is refused by name. H2 has most types of the standard."""
# ruff: noqa: E501 - a table: one line per value reads better than six

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.h2 import H2, run_script
from tests.lab import ok
from tests.type_lab import PAGE, Case, Catalogue, Refusal, assert_others_read_the_same

from floodmark.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = (
    Case("tinyint", "-128", "int", "-128"),
    Case("bigint", "9223372036854775807", "bigint", "9223372036854775807"),
    Case("real", "0.1", "float", "0.1"),
    Case("double precision", "0.1", "double", "0.1"),
    Case("decimal(12,2)", "12.5", "decimal(12,2)", "12.50"),
    Case("numeric(38,10)", "-1234567890123456789012345678.0123456789", "decimal(38,10)", "-1234567890123456789012345678.0123456789"),
    Case("decimal(60,20)", "12.75", "string", "12.75000000000000000000", "more digits than Spark has (38): as text; cast it in a `transform`"),
    Case("decfloat(20)", "1.5", "string", "1.5", "no fixed scale: as text"),
    Case("boolean", "true", "boolean", "true"),
    Case("varchar(10)", "'ab  '", "string", "ab  "),
    Case("char(5)", "'ab'", "string", "ab   ", "padded, as the driver shows it"),
    Case("clob", "'long'", "string", "long"),
    Case("varbinary(10)", "x'00ff10'", "binary", "00FF10"),
    Case("uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "string", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    Case("date", "date '2026-11-15'", "date", "2026-11-15"),
    Case("date", "date '1500-02-28'", "date", "1500-02-28"),
    Case("date", "date '1582-10-10'", "date", "1582-10-10", "one calendar for all times: no days are left out in 1582"),
    Case("date", "date '0001-01-01'", "date", "0001-01-01"),
    Case("date", "date '-0043-03-15'", "date", "-0043-03-15"),
    Case("timestamp(6)", "timestamp '2026-03-29 02:30:00.000001'", "timestamp_ntz", "2026-03-29 02:30:00.000001", "no zone, none added"),
    Case("timestamp(6)", "timestamp '1500-02-28 23:59:59.999999'", "timestamp_ntz", "1500-02-28 23:59:59.999999"),
    Case("timestamp(9)", "timestamp '2026-01-01 10:00:00.123456'", "timestamp_ntz", "2026-01-01 10:00:00.123456", "nanoseconds that are not zero are refused"),
    Case("timestamp(6) with time zone", "timestamp with time zone '2026-11-15 10:00:00.123456+02:00'", "timestamp", "2026-11-15 08:00:00.123456", "a moment; shown in the reader's zone, here UTC"),
    Case("timestamp(6) with time zone", "timestamp with time zone '1500-02-28 23:59:59.999999+05:30'", "timestamp", "1500-02-28 18:29:59.999999"),
    Case("time(6)", "time '23:59:59.123456'", "string", "23:59:59.123456", "Delta has no times of day"),
    Case("time(9)", "time '23:59:59.123456789'", "string", "23:59:59.123456789"),
    Case("time(6) with time zone", "time with time zone '23:59:59.123456+02:00'", "string", "23:59:59.123456+02"),
)  # fmt: skip

REFUSALS = (
    Refusal("timestamp(9)", "timestamp '2026-01-01 10:00:00.123456789'", "2026-01-01 10:00:00.123456789, which no timestamp_ntz of Spark can be", "Spark has microseconds"),
    Refusal("timestamp(9) with time zone", "timestamp with time zone '2026-01-01 10:00:00.1234567+02:00'", "2026-01-01 10:00:00.1234567+02, which no timestamp of Spark can be"),
    Refusal("decimal(45,0)", f"1{'0' * 40}", f"1{'0' * 40}, which no decimal(38,0) of Spark can be", "more digits than Spark has (38)"),
)  # fmt: skip


def catalogue(folder: Path) -> Catalogue:
    url = f"jdbc:h2:file:{folder}/shop;DATABASE_TO_LOWER=TRUE"
    connection = {"type": "jdbc", "url": url, "driver": "org.h2.Driver", "jars": [H2], "user": "sa"}
    return Catalogue("Any JDBC database: H2", connection, CASES, REFUSALS, lambda text: run_script(folder, url, text))


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
        assert "leave the column out" in said


def test_a_refusal_stops_the_run_unless_the_column_is_left_out(tmp_path: Path, spark: SparkSession) -> None:
    known = catalogue(tmp_path)
    known.create("odd", REFUSALS)
    result = known.project(tmp_path, spark, "odd").run("types")
    assert not result.success
    assert 'column "c0" of odd holds 2026-01-01 10:00:00.123456789' in result.errors[0]
    project = known.project(tmp_path, spark, "odd", transform={"sql": "SELECT id FROM source"})
    assert ok(project.run("types", full_refresh=True)).rows.inserted == 2


def test_nanoseconds_in_the_cursor_are_refused_by_name(tmp_path: Path, spark: SparkSession) -> None:
    known = catalogue(tmp_path)
    known.create("odd", REFUSALS[:1])
    result = known.project(tmp_path, spark, "odd", change={"by": "timestamp", "column": "c0", "nulls": "skip"}).run(
        "types"
    )
    assert 'column "c0" of odd holds 2026-01-01 10:00:00.123456789' in result.errors[0]


@pytest.mark.parametrize(
    ("declared", "named"),
    [
        ("integer array", "INTEGER ARRAY"),
        ("json", "JSON"),
        ("enum('x', 'y')", "ENUM('x', 'y')"),
        ("interval day", "INTERVAL DAY"),
    ],
)
def test_a_type_that_spark_can_not_read_is_refused_with_its_column(
    tmp_path: Path, spark: SparkSession, declared: str, named: str
) -> None:
    known = catalogue(tmp_path)
    known.execute(f"CREATE TABLE odd (id int PRIMARY KEY, fine int, c0 {declared})")
    with pytest.raises(ConfigError) as caught:
        known.project(tmp_path, spark, "odd").plan("types")
    assert caught.value.message == f'column "c0" of odd is {named}, which Spark can\'t read through JDBC'
    assert 'CAST("c0" AS varchar(4000)) AS "c0" FROM' in str(caught.value.hint)
    source = {"connection": "shop", "query": "select id, c0 from odd"}
    with pytest.raises(ConfigError, match="the query has a column of type"):
        known.project(tmp_path, spark, "odd", source=source).plan("types")
    source["query"] = "select id, cast(c0 as varchar(4000)) as c0 from odd"
    assert known.project(tmp_path, spark, "odd", source=source).plan("types").rows == 0
