"""Every Postgres type through a real run: it arrives with its value, or is refused by name."""
# ruff: noqa: E501 - a table: one line per type reads better than six

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from tests.lab import ok
from tests.type_lab import PAGE, Case, Catalogue, Refusal, assert_others_read_the_same

from floodmark.connections.postgres import PostgresConnection
from floodmark.sources.postgres.source import PostgresSource
from floodmark.sources.postgres.types import COLUMNS, RESULT, PgColumn
from floodmark.spark.session import own_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = "as text; cast it in a `transform`"

CASES = (
    Case("smallint", "-32768", "smallint", "-32768"),
    Case("integer", "2147483647", "int", "2147483647"),
    Case("bigint", "-9223372036854775808", "bigint", "-9223372036854775808"),
    Case("bigint", "9223372036854775807", "bigint", "9223372036854775807"),
    Case("numeric(38,10)", "-1234567890123456789012345678.0123456789", "decimal(38,10)", "-1234567890123456789012345678.0123456789"),
    Case("numeric(5,-2)", "1234567", "decimal(7,0)", "1234600", "rounded by Postgres"),
    Case("numeric(2,4)", "0.0012", "decimal(4,4)", "0.0012"),
    Case("numeric(50,20)", "123456789012345678901234567890.12345678901234567890", "string", "123456789012345678901234567890.12345678901234567890", "more digits than Spark has (38): " + TEXT),
    Case("numeric", "0.33333333333333333333333333333333333333333333", "string", "0.33333333333333333333333333333333333333333333", "no limit to its digits: " + TEXT),
    Case("numeric", "'NaN'", "string", "NaN"),
    Case("real", "3.4028235e38", "float", "3.4028235E38"),
    Case("real", "'NaN'", "float", "NaN"),
    Case("double precision", "0.1", "double", "0.1"),
    Case("double precision", "'-Infinity'", "double", "-Infinity"),
    Case("money", "-1234567.89", "string", "-1234567.89", "the plain number, " + TEXT),
    Case("boolean", "true", "boolean", "true"),
    Case("text", "E'\\U0001F30A \\u00e9 \\t \\n \\\\ \" '''", "string", "🌊 é \t \n \\ \" '"),
    Case("text", "''", "string", "", "an empty text is not NULL"),
    Case("varchar(10)", "'ab  '", "string", "ab  "),
    Case("char(5)", "'ab'", "string", "ab   ", "padded, as Postgres shows it"),
    Case('"char"', "'x'", "string", "x"),
    Case("name", "'x'", "string", "x"),
    Case("bytea", "'\\x00ff10'", "binary", "00FF10"),
    Case("date", "'2026-11-15'", "date", "2026-11-15"),
    Case("date", "'1582-10-10'", "date", "1582-10-10", "one calendar for all times, as in Postgres: no days are left out in 1582"),
    Case("date", "'0001-01-01'", "date", "0001-01-01"),
    Case("date", "'9999-12-31'", "date", "9999-12-31"),
    Case("date", "'0044-03-15 BC'", "date", "-0043-03-15", "the year before 1 is 0; Python and pandas have no such dates"),
    Case("timestamptz", "'2026-11-15 10:00:00.123456+02'", "timestamp", "2026-11-15 08:00:00.123456", "a moment; shown in the reader's zone, here UTC"),
    Case("timestamptz", "'1883-11-18 12:03:57.999999 America/New_York'", "timestamp", "1883-11-18 17:03:57.999999"),
    Case("timestamptz", "'1500-02-28 23:59:59.999999+00'", "timestamp", "1500-02-28 23:59:59.999999"),
    Case("timestamptz", "'0001-01-01 00:00:00+00'", "timestamp", "0001-01-01 00:00:00"),
    Case("timestamptz", "'9999-12-31 23:59:59.999999+00'", "timestamp", "9999-12-31 23:59:59.999999"),
    Case("timestamp", "'2026-03-29 02:30:00.000001'", "timestamp_ntz", "2026-03-29 02:30:00.000001", "no zone, none added; hours that a zone skips are kept"),
    Case("timestamp", "'1500-02-28 23:59:59.999999'", "timestamp_ntz", "1500-02-28 23:59:59.999999"),
    Case("timestamp", "'0044-03-15 12:00:00 BC'", "timestamp_ntz", "-0043-03-15 12:00:00"),
    Case("timestamp(0)", "'2026-01-01 00:00:00.6'", "timestamp_ntz", "2026-01-01 00:00:01", "rounded by Postgres"),
    Case("time", "'23:59:59.999999'", "string", "23:59:59.999999", "Delta has no times of day"),
    Case("timetz", "'12:34:56.000001+02'", "string", "12:34:56.000001+02"),
    Case("interval", "'1 year 2 mons -3 days 04:05:06.789'", "string", "P1Y2M-3DT4H5M6.789S", "ISO 8601; Delta has no intervals"),
    Case("uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "string", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    Case("json", "'{\"b\": 1.10, \"a\": [null, \"ü\"]}'", "string", '{"b": 1.10, "a": [null, "ü"]}'),
    Case("jsonb", "'{\"b\": 12345678901234567890.10, \"a\": 1}'", "string", '{"a": 1, "b": 12345678901234567890.10}'),
    Case("xml", "'<a b=\"c\">é</a>'", "string", '<a b="c">é</a>'),
    Case("inet", "'192.168.1.1'", "string", "192.168.1.1"),
    Case("inet", "'::1/64'", "string", "::1/64"),
    Case("cidr", "'10.0.0.0/8'", "string", "10.0.0.0/8"),
    Case("macaddr", "'08:00:2b:01:02:03'", "string", "08:00:2b:01:02:03"),
    Case("macaddr8", "'08:00:2b:01:02:03:04:05'", "string", "08:00:2b:01:02:03:04:05"),
    Case("bit(1)", "B'1'", "string", "1", "digits, not a boolean"),
    Case("bit(5)", "B'00101'", "string", "00101"),
    Case("varbit(8)", "B'0101'", "string", "0101"),
    Case("oid", "4294967295", "bigint", "4294967295"),
    Case("pg_lsn", "'16/B374D848'", "string", "16/B374D848"),
    Case("tsvector", "'fat:2 cat:3'", "string", "'cat':3 'fat':2"),
    Case("tsquery", "'fat & cat'", "string", "'fat' & 'cat'"),
    Case("point", "'(1.1,-2)'", "string", "(1.1,-2)"),
    Case("polygon", "'((0,0),(0,1),(1,1))'", "string", "((0,0),(0,1),(1,1))"),
    Case("circle", "'<(0,0),0.1>'", "string", "<(0,0),0.1>"),
    Case("int4range", "'[1,10]'", "string", "[1,11)"),
    Case("tstzrange", "'[2026-01-01 10:00:00+02,)'", "string", '["2026-01-01 08:00:00+00",)', "times in UTC"),
    Case("nummultirange", "'{[1,2],(3,4.5)}'", "string", "{[1,2],(3,4.5)}"),
    Case("mood", "'so so'", "string", "so so", "an enum"),
    Case("address", "ROW('Main \"st\"', 7, 1.50)", "string", '{"street":"Main \\"st\\"","number":7,"rate":1.50}', "a composite type, as JSON"),
    Case("cents", "12.34", "decimal(10,2)", "12.34", "a domain over `numeric(10,2)` arrives as that"),
    Case("integer[]", "'{1,NULL,-3}'", "array<int>", "[1,null,-3]"),
    Case("integer[]", "'{}'", "array<int>", "[]"),
    Case("bigint[]", "'{9223372036854775807}'", "array<bigint>", "[9223372036854775807]"),
    Case("boolean[]", "'{t,f,NULL}'", "array<boolean>", "[true,false,null]"),
    Case("double precision[]", "'{NaN,Infinity,0.1}'", "array<double>", '["NaN","Infinity",0.1]'),
    Case("numeric(10,2)[]", "'{1.5,NULL}'", "array<decimal(10,2)>", "[1.50,null]"),
    Case("numeric[]", "'{1.50,NaN}'", "array<string>", '["1.50","NaN"]'),
    Case("text[]", "ARRAY['a,b', NULL, 'NULL', '', '\"\\', '🌊']", "array<string>", '["a,b",null,"NULL","","\\"\\\\","🌊"]'),
    Case("uuid[]", "'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'", "array<string>", '["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]'),
    Case("timestamptz[]", "'{2026-01-01 10:00:00.5+02,infinity}'", "array<string>", '["2026-01-01 08:00:00.5+00","infinity"]', "arrays of anything but numbers, booleans and text: " + TEXT),
    Case("bytea[]", "'{\"\\\\x00ff\"}'", "array<string>", '["\\\\x00ff"]'),
    Case("mood[]", "'{so so}'", "array<string>", '["so so"]'),
    Case("cents[]", "'{1.5,2}'", "array<decimal(10,2)>", "[1.50,2.00]"),
    Case("integer[][]", "'{{1,2},{3,NULL}}'", "string", "[[1,2],[3,null]]", "declared with more than one dimension: as JSON"),
    Case("address[]", "ARRAY[ROW('s', 1, NULL)::address]", "string", '[{"street":"s","number":1,"rate":null}]', "as JSON"),
)  # fmt: skip

REFUSALS = (
    Refusal("date", "'infinity'", "infinity, which no date", "Spark has no infinite dates"),
    Refusal("date", "'-infinity'", "-infinity, which no date"),
    Refusal("timestamptz", "'infinity'", "infinity or a time after the year 294246, which no timestamp"),
    Refusal("timestamp", "'-infinity'", "-infinity, which no timestamp"),
    Refusal("timestamp", "'294276-12-31'", "infinity or a time after the year 294246", "Spark's last year is 294246"),
    Refusal("numeric(10,2)", "'NaN'", "NaN, which no decimal(10,2)", "a decimal is always a number; floats may be NaN"),
    Refusal("numeric(10,2)[]", "'{1,NaN}'", '["1.00","NaN"], which no array<decimal(10,2)>'),
    Refusal("integer[]", "'{{1,2},{3,4}}'", "{{1,2},{3,4}}, which is no array of one dimension", "declared as `integer[][]` it arrives as JSON"),
)  # fmt: skip


def catalogue(url: str) -> Catalogue:
    def execute(statement: str) -> None:
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(statement.encode())

    return Catalogue(
        "Postgres",
        {"type": "postgres", "url": url},
        CASES,
        REFUSALS,
        execute,
        setup=(
            "CREATE TYPE mood AS ENUM ('sad', 'so so')",
            "CREATE TYPE address AS (street text, number int, rate numeric)",
            "CREATE DOMAIN euro AS numeric(10,2)",
            "CREATE DOMAIN cents AS euro CHECK (VALUE > 0)",
        ),
    )


def test_each_type_arrives_with_its_value(pg_db: str, tmp_path: Path, spark: SparkSession) -> None:
    known = catalogue(pg_db)
    # None of it may depend on how the server is set up.
    for setting in ("timezone = 'Asia/Kathmandu'", "intervalstyle = 'sql_standard'", "bytea_output = 'escape'"):
        known.execute(f"ALTER DATABASE {pg_db.rpartition('/')[2]} SET {setting}")
    known.execute(f"ALTER DATABASE {pg_db.rpartition('/')[2]} SET datestyle = 'German'")
    seen = known.observe(tmp_path, spark)
    for case, kind, value in seen:
        assert (case.declared, kind, value) == (case.declared, case.arrives, case.value)
    assert_others_read_the_same(tmp_path, spark)
    assert known.section(seen) in PAGE.read_text(), "run: python scripts/write_types.py"


def test_what_can_not_arrive_is_refused_by_name(pg_db: str, tmp_path: Path, spark: SparkSession) -> None:
    for wanted, said in catalogue(pg_db).refused(tmp_path, spark):
        assert said.startswith(wanted)
        assert "(the row with id = 1); leave the column out" in said


def test_a_refusal_stops_the_run_unless_the_column_is_left_out(pg_db: str, tmp_path: Path, spark: SparkSession) -> None:
    known = catalogue(pg_db)
    known.create("odd", REFUSALS)
    result = known.project(tmp_path, spark, "odd").run("types")
    assert not result.success
    assert 'column "c0" of odd holds infinity' in result.errors[0]
    project = known.project(tmp_path, spark, "odd", transform={"sql": "SELECT id FROM source"})
    assert ok(project.run("types", full_refresh=True)).rows.inserted == 2


def test_an_upsert_compares_every_type(pg_db: str, tmp_path: Path, spark: SparkSession) -> None:
    """A row that is read again and says nothing new is not written again, NaN and arrays included."""
    known = catalogue(pg_db)
    for statement in known.setup:
        known.execute(statement)
    known.create("types", CASES)
    known.execute("ALTER TABLE types ADD COLUMN at timestamptz(3) NOT NULL DEFAULT '2026-01-01'")
    project = known.project(
        tmp_path,
        spark,
        "types",
        change={"by": "timestamp", "column": "at", "delay": "0s"},
        target={"connection": "lake", "table": "types", "mode": "upsert", "keys": ["id"]},
    )
    assert ok(project.run("types")).rows.inserted == 2
    known.execute("UPDATE types SET c0 = 7, at = '2026-01-02' WHERE id = 2")
    rows = ok(project.run("types")).rows
    assert (rows.inserted, rows.updated) == (0, 1)


def test_times_do_not_depend_on_the_session_s_zone_nor_on_the_number_of_readers(
    pg_db: str, tmp_path: Path, spark: SparkSession
) -> None:
    known = catalogue(pg_db)
    known.execute("CREATE TABLE odd (id int PRIMARY KEY, at timestamp NOT NULL, moment timestamptz)")
    known.execute(
        "INSERT INTO odd SELECT n, TIMESTAMP '2026-03-29 01:00:00.000001' + n * interval '10 min', "
        "TIMESTAMPTZ '2026-10-25 00:00:00.000001+00' + n * interval '10 min' FROM generate_series(1, 24) n"
    )
    session = own_session(spark)
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    project = known.project(
        tmp_path,
        session,
        "odd",
        source={"connection": "shop", "table": "odd", "partitions": 3},
        change={"by": "timestamp", "columns": ["at", "id"], "delay": "0s", "timezone": "UTC"},
    )
    assert ok(project.run("types")).rows.inserted == 24
    loaded = spark.read.format("delta").load(str(tmp_path / "lake" / "odd")).orderBy("id")
    assert dict(loaded.dtypes)["at"] == "timestamp_ntz"
    at, moment = loaded.selectExpr("cast(at AS string)", "cast(moment AS string)").collect()[8]
    assert (at, moment) == ("2026-03-29 02:30:00.000001", "2026-10-25 01:30:00.000001")


def test_views_and_domains_as_cursor(pg_db: str, tmp_path: Path, spark: SparkSession) -> None:
    known = catalogue(pg_db)
    known.execute("CREATE DOMAIN moment AS timestamptz(3)")
    known.execute(
        "CREATE TABLE base (id int PRIMARY KEY, at moment NOT NULL, tags text[][], half int GENERATED ALWAYS AS (id / 2) STORED)"
    )
    known.execute(
        "INSERT INTO base VALUES (1, '2026-01-01 10:00:00.123', '{{a}}'), (2, '2026-01-01 10:00:00.124', '{{b}}')"
    )
    known.execute("CREATE VIEW odd AS SELECT id, at, tags[1][1] AS tag, half, avg(id) OVER () AS mean FROM base")
    change = {"by": "timestamp", "column": "at", "delay": "0s"}
    project = known.project(tmp_path, spark, "odd", change=change)
    assert ok(project.run("types")).rows.inserted == 2
    loaded = spark.read.format("delta").load(str(tmp_path / "lake" / "odd"))
    assert dict(loaded.dtypes) == {"id": "int", "at": "timestamp", "tag": "string", "half": "int", "mean": "string"}
    assert [tuple(r) for r in loaded.orderBy("id").select("tag", "half").collect()] == [("a", 0), ("b", 1)]


def test_the_primary_key_is_known_whole(pg_db: str, tmp_path: Path) -> None:
    known = catalogue(pg_db)
    known.execute("CREATE TABLE odd (id int, at int, v text, PRIMARY KEY (v, id) INCLUDE (at))")
    spec = known.project(tmp_path, None, "odd").spec
    source = PostgresSource(PostgresConnection.model_validate(known.connection), spec.pipelines["types"], tmp_path)
    assert source.describe().primary_key == ("v", "id")
    source.close()


def test_the_columns_of_a_query_are_typed_like_those_of_a_table(pg_db: str) -> None:
    known = catalogue(pg_db)
    for statement in known.setup:
        known.execute(statement)
    known.create("types", CASES)
    with psycopg.connect(pg_db) as db:
        table = [PgColumn(*row) for row in db.execute(COLUMNS.encode(), ["types"]).fetchall()]
        result = db.execute("SELECT * FROM types LIMIT 0").pgresult
        assert result is not None
        places = range(result.nfields)
        found = (
            [table_column.name for table_column in table],
            [result.ftype(i) for i in places],
            [result.fmod(i) for i in places],
        )
        query = [PgColumn(*row) for row in db.execute(RESULT.encode(), found).fetchall()]
    for ours, theirs in zip(query, table, strict=True):
        # How many dimensions were declared is not part of a result, nor are indexes.
        assert ours == replace(theirs, notnull=False, key_place=0, ndims=0, indexed=False)
