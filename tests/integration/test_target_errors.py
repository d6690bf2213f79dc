"""What is wrong with a target is told by name and line, before a row is read; and the target stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.ends import DATABASES, KINDS, LAKES, ROWS, End, open_end
from tests.lab import ok
from tests.mariadb import MariadbServer
from tests.services import PostgresServer, free_port

from floodmark.errors import ConfigError, FloodmarkError, Refused, TargetError
from floodmark.testing.faults import FaultPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAKEABLE = tuple(kind for kind in KINDS if kind != "parquet")
"""A Parquet table has a manifest of ours, or is none."""
UPSERT = "{connection: lake, table: orders, mode: upsert, keys: [id]}"
HISTORY = "{connection: lake, table: orders, mode: history, keys: [id]}"
RANGES = "{connection: lake, table: orders, mode: replace_range}"
BY_VALUE = "{connection: lake, table: orders, mode: replace_partitions, partition_by: [val]}"
OLD = {"id": "bigint", "val": "text"}
"""Columns that lack the cursor."""


@pytest.fixture
def open_at(tmp_path: Path, spark: SparkSession, request: pytest.FixtureRequest) -> Callable[[str], End]:
    return lambda kind: open_end(kind, tmp_path, spark, request)


def refused(end: End, *, line: str = "target:", read: bool = False, **declared: str) -> FloodmarkError:
    """The error of a run with three rows to load. `read`: Spark has been told where the rows are."""
    if not end.lab.source_rows():
        end.lab.fill(3)
    faults = FaultPlan.of()
    result = end.lab.project(faults.registry(), **declared).run("orders")
    error = result.failure
    assert isinstance(error, FloodmarkError), result
    assert bool(faults.calls.get("source.read")) == read
    assert bool(faults.calls.get("source.snapshot")) == read
    assert error.declared_at is not None
    assert error.declared_at.file.endswith("floodmark.yml")
    assert error.declared_at.text.strip().startswith(line), error.declared_at
    return error


# -- a place that is not there, or not ours to write to -------------------------------------------------------------


@pytest.mark.parametrize("kind", LAKES)
def test_a_file_in_place_of_the_folder(open_at: Callable[[str], End], kind: str) -> None:
    end = open_at(kind)
    (end.lab.root / "lake").write_text("mine")
    error = refused(end)
    assert isinstance(error, TargetError)
    assert f"{end.lab.root / 'lake'} is not a folder" in error.message
    assert error.table == "orders"
    assert (end.lab.root / "lake").read_text() == "mine"


def test_a_file_in_place_of_a_delta_table(open_at: Callable[[str], End]) -> None:
    end = open_at("delta")
    (end.lab.root / "lake").mkdir()
    (end.lab.root / "lake" / "orders").write_text("mine")
    assert f"{end.lab.root / 'lake' / 'orders'} is not a folder" in refused(end).message


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_database_that_is_no_file_of_its_kind(open_at: Callable[[str], End], kind: str) -> None:
    end = open_at(kind)
    declared = end.lab.lake
    path = end.lab.root / declared.rpartition(" ")[2].rstrip("}")
    path.write_text("somebody's notes, " * 100)
    error = refused(end)
    assert isinstance(error, TargetError)
    assert str(path) in error.message
    assert "database" in error.message
    assert error.table == "orders"
    assert path.read_text().startswith("somebody's notes")
    path.unlink()
    path.mkdir()
    assert f"{path} is a folder, and a database file is wanted there" in refused(end).message
    end.lab.lake = declared.replace("warehouse", "nowhere/warehouse")
    assert f"there is no folder {end.lab.root / 'nowhere'}" in refused(end).message


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_a_database_or_schema_that_is_not_there(open_at: Callable[[str], End], kind: str) -> None:
    end = open_at(kind)
    error = refused(end, target="{connection: lake, table: nowhere.orders, mode: upsert, keys: [id]}")
    assert "nowhere" in error.message
    assert error.table == "nowhere.orders"
    assert "CREATE" in str(error.hint)
    end.lab.lake = f'{{type: {kind}, url: "{end.url}_gone"}}'
    error = refused(end)
    assert isinstance(error, TargetError)
    assert "_gone" in error.message
    assert error.table == "orders"


@pytest.mark.parametrize("uri", ["sqlite:///nowhere/catalog.db", "postgresql://me@127.0.0.1:{port}/catalogs", "rest"])
def test_a_catalog_that_is_not_there(open_at: Callable[[str], End], uri: str) -> None:
    end = open_at("iceberg")
    where = "http://127.0.0.1:{port}" if uri == "rest" else uri
    kind = "rest" if uri == "rest" else "jdbc, name: shop"
    end.lab.lake = f'{{type: iceberg, path: lake, catalog: {{type: {kind}, uri: "{where.format(port=free_port())}"}}}}'
    error = refused(end, retries="{attempts: 1}")
    assert isinstance(error, TargetError)
    assert "catalog" in error.message
    assert error.table == "orders"
    assert not (end.lab.root / "lake").exists()


def test_a_role_of_postgres_that_may_not_write(open_at: Callable[[str], End], postgres: PostgresServer) -> None:
    end = open_at("postgres")
    end.make(ROWS)
    end.execute("CREATE ROLE reader LOGIN PASSWORD 'reader-pw'")
    end.lab.lake = f'{{type: postgres, url: "{_as(end.url, "reader", "reader-pw")}"}}'
    try:
        error = refused(end)
        assert "reader may not create tables there" in error.message
        end.execute("GRANT CREATE ON SCHEMA public TO reader; GRANT SELECT, INSERT ON orders TO reader")
        error = refused(end)
        assert "reader may not UPDATE on orders" in error.message
        assert 'GRANT UPDATE ON "public"."orders" TO "reader"' in str(error.hint)
        assert end.rows() == 0
        append = "{connection: lake, table: orders, mode: append}"
        ok(end.lab.project(mode="append", target=append).run("orders"))
        assert end.rows() == 3
    finally:
        end.execute("DROP OWNED BY reader; DROP ROLE reader")


def test_a_user_of_mariadb_that_may_not_write(open_at: Callable[[str], End], mariadb: MariadbServer) -> None:
    end = open_at("mariadb")
    database = end.url.rpartition("/")[2]
    end.make(ROWS)
    pattern = database.replace("_", "\\_")
    mariadb.execute("CREATE USER reader@'%' IDENTIFIED BY 'reader-pw'")
    mariadb.execute(f"GRANT SELECT, INSERT ON `{pattern}`.* TO reader@'%'")
    end.lab.lake = f'{{type: mariadb, url: "{_as(end.url, "reader", "reader-pw")}"}}'
    try:
        error = refused(end)
        assert f"reader may not CREATE nor DROP tables in {database}" in error.message
        assert error.table == "orders"
        assert f"GRANT CREATE, DROP ON `{database}`.* TO reader" in str(error.hint)
        mariadb.execute(f"GRANT ALL ON `{pattern}`.* TO reader@'%'")
        ok(end.lab.project().run("orders"))
        assert end.rows() == 3
    finally:
        mariadb.execute("DROP USER reader@'%'")


def _as(url: str, user: str, password: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{user}:{password}@{rest.rpartition('@')[2]}"


# -- columns that are not in the data ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_is_not_in_the_data(open_at: Callable[[str], End], kind: str) -> None:
    end = open_at(kind)
    target = "{connection: lake, table: orders, mode: upsert, keys: [number]}"
    error = refused(end, target=target)
    assert isinstance(error, ConfigError)
    assert 'column "number" is not in orders' in error.message
    assert (error.column, error.table) == ("number", "orders")
    error = refused(end, target=target, read=True, transform='{sql: "select id, val, updated_at from source"}')
    assert isinstance(error, ConfigError)
    assert 'column "number", a key, is not among the columns to load' in error.message
    assert not _is_there(end)


@pytest.mark.parametrize("kind", LAKES)
@pytest.mark.parametrize("mode", ["replace_partitions", "upsert, keys: [id]"])
def test_a_partition_column_that_is_not_in_the_data(open_at: Callable[[str], End], kind: str, mode: str) -> None:
    end = open_at(kind)
    declared: dict[str, Any] = {"target": f"{{connection: lake, table: orders, mode: {mode}, partition_by: [country]}}"}
    if "replace" in mode:
        declared["change"] = "{by: none}"
    error = refused(end, **declared)
    assert isinstance(error, ConfigError)
    assert 'column "country" is not in orders' in error.message
    error = refused(end, read=True, transform='{sql: "select id, val, updated_at from source"}', **declared)
    assert 'column "country", a partition column, is not among the columns to load' in error.message
    assert not _is_there(end)


def _is_there(end: End) -> bool:
    return (end.lab.root / "lake" / "orders").exists() if end.kind == "parquet" else bool(end.columns())


# -- a table that somebody else has made ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MAKEABLE)
def test_a_table_without_the_key(open_at: Callable[[str], End], kind: str) -> None:
    end = open_at(kind)
    end.make({"val": "text", "updated_at": "timestamp"})
    error = refused(end)
    assert isinstance(error, TargetError)
    assert error.message == 'the table orders has no column "id", a key that rows are found by'
    assert (error.table, error.column) == ("orders", "id")
    assert "columns of orders: val, updated_at" in str(error.hint)
    assert end.columns() == ["val", "updated_at"]
    ok(end.lab.project().run("orders", full_refresh=True))
    assert end.rows() == 3


@pytest.mark.parametrize("kind", ["postgres", "mariadb", "duckdb"])
def test_a_key_that_somebody_has_dropped(open_at: Callable[[str], End], kind: str) -> None:
    """Its rows would be found by none any more, and be there twice."""
    end = open_at(kind)
    end.lab.fill(3)
    ok(end.lab.project().run("orders"))
    end.execute("ALTER TABLE orders DROP COLUMN id")
    end.lab.execute("UPDATE orders SET val = 'other', updated_at = '2026-01-02 10:00:00'")
    assert 'the table orders has no column "id"' in refused(end).message
    assert end.columns() == ["val", "updated_at"]
    assert end.rows() == 3


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_that_a_failed_first_load_has_made_may_be_declared_anew(
    open_at: Callable[[str], End], kind: str
) -> None:
    end = open_at(kind)
    end.lab.fill(3)
    project = end.lab.project(columns="{val: {cast: int}}")
    assert not project.run("orders").success
    assert "id" in end.columns()
    project.store.delete("orders")
    renamed = {"transform": '{sql: "select id as number, val, updated_at from source"}'}
    ok(end.lab.project(target=UPSERT.replace("id", "number"), **renamed).run("orders"))
    assert end.rows() == 3


@pytest.mark.parametrize("kind", MAKEABLE)
def test_a_table_that_can_keep_no_history(open_at: Callable[[str], End], kind: str) -> None:
    end = open_at(kind)
    end.make(ROWS)
    error = refused(end, target=HISTORY)
    assert isinstance(error, TargetError)
    assert error.message == 'the table orders has no column "valid_from", which a history is kept in'
    assert error.column == "valid_from"
    assert end.columns() == list(ROWS)
    assert end.rows() == 0


@pytest.mark.parametrize("kind", MAKEABLE)
def test_a_table_without_the_column_that_ranges_are_of(open_at: Callable[[str], End], kind: str) -> None:
    end = open_at(kind)
    end.make(OLD)
    error = refused(end, target=RANGES, line="change:")
    assert isinstance(error, TargetError)
    assert error.message == 'the table orders has no column "updated_at", which says what lies in the range'
    assert end.columns() == list(OLD)


@pytest.mark.parametrize("mode", ["append", "upsert"])
@pytest.mark.parametrize("kind", MAKEABLE)
def test_a_table_with_a_column_of_another_type(open_at: Callable[[str], End], kind: str, mode: str) -> None:
    """Spark alone knows what the batch is made of, so it is asked; no row is read for it."""
    end = open_at(kind)
    end.make({"id": "bigint", "updated_at": "timestamp", "val": "bigint"})
    error = refused(end, read=True, mode=mode)
    assert isinstance(error, TargetError)
    assert "the columns are not those of orders: val was bigint and is string" in error.message
    assert error.table == "orders"
    assert "cast" in str(error.hint)
    assert end.columns() == ["id", "updated_at", "val"]
    assert end.rows() == 0


@pytest.mark.parametrize("parts", [[], ["id"]])
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_with_other_partitions(open_at: Callable[[str], End], kind: str, parts: list[str]) -> None:
    end = open_at(kind)
    end.make(ROWS, parts)
    error = refused(end, target=BY_VALUE, change="{by: none}")
    assert isinstance(error, TargetError)
    layout = "partitioned by id" if parts else "not partitioned"
    assert f"the table orders is {layout}, and mode replace_partitions is declared by val" in error.message
    assert end.rows() == 0
    ok(end.lab.project(target=BY_VALUE, change="{by: none}").run("orders", full_refresh=True))
    assert end.rows() == 3


def test_a_folder_of_files_with_other_partitions_or_of_somebody_else(open_at: Callable[[str], End]) -> None:
    end = open_at("parquet")
    theirs = end.lab.root / "lake" / "orders" / "part-0.parquet"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("rows")
    error = refused(end)
    assert "the folder of orders holds part-0.parquet, and no manifest of ours" in error.message
    theirs.unlink()
    ok(end.lab.project(target=BY_VALUE, change="{by: none}").run("orders"))
    error = refused(end, target=BY_VALUE.replace("[val]", "[id]"), change="{by: none}")
    assert "is partitioned by val, and mode replace_partitions is declared by id" in error.message


@pytest.mark.parametrize("kind", DATABASES)
def test_a_table_that_holds_rows_of_somebody_else(open_at: Callable[[str], End], kind: str) -> None:
    end = open_at(kind)
    end.make(OLD)
    end.execute("INSERT INTO orders VALUES (1, 'mine')")
    error = refused(end)
    assert isinstance(error, Refused)
    assert "the target table orders holds rows, but no window of this pipeline is known" in error.message
    assert end.execute("SELECT * FROM orders") == [(1, "mine")]
