"""Iceberg tables as the target: rows, columns, names; read by PyIceberg."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.iceberg import CONNECTION, IcebergLab, Lake, table_at
from tests.lab import load_after_load, ok

from floodmark.errors import ConfigError, TargetError
from floodmark.model.names import DELETED
from floodmark.model.position import Position
from floodmark.opening import load
from floodmark.spark.session import own_session
from floodmark.targets.iceberg.target import IcebergTarget
from floodmark.testing.target_suite import COLUMNS, a_load, a_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Lake:
    return Lake(tmp_path, spark)


@pytest.fixture
def lab(tmp_path: Path, spark: SparkSession) -> IcebergLab:
    return IcebergLab(tmp_path / "project", "sqlite", "", spark)


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_load_after_load_and_the_state_rebuilt_from_the_table(lab: IcebergLab, mode: str) -> None:
    load_after_load(lab, mode)
    lab.assert_equal()
    assert lab.branches() == ["main"]


def test_a_plan_makes_nothing_and_loads_neither_spark_nor_pyiceberg(lab: IcebergLab) -> None:
    lab.fill(3)
    ok(lab.project().run("orders"))
    asked = (
        "import sys; from floodmark.opening import load; load('floodmark.yml').plan('orders'); "
        "print([m for m in ('pyspark', 'pyiceberg', 'pyarrow') if m in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", asked], cwd=lab.root, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_a_folder_that_can_not_be_written_is_told_before_anything_is_read(lab: IcebergLab) -> None:
    lab.fill(1)
    (lab.root / "lake").write_text("a file")
    with pytest.raises(TargetError, match="is not a folder"):
        load(lab.write()).plan("orders")


def test_a_full_refresh_takes_columns_and_partitions_along(lab: IcebergLab) -> None:
    lab.fill(3)
    ok(lab.project(transform='{sql: "select *, 1 as extra, 2 as n from source"}').run("orders"))
    keys = "{connection: lake, table: orders, mode: upsert, keys: [id], partition_by: [val]}"
    other = lab.project(transform='{sql: "select *, 2L * 3000000000 as n from source"}', target=keys)
    ok(other.run("orders", full_refresh=True))
    assert sorted(lab.target_columns()) == ["id", "n", "updated_at", "val"]
    assert [f.name for f in table_at(Path(lab.table)).spec().fields] == ["val"]
    assert {row["n"] for row in table_at(Path(lab.table)).scan().to_arrow().to_pylist()} == {6_000_000_000}
    lab.assert_equal()
    text = lab.project(transform="{sql: \"select *, 'x' as n from source\"}", target=keys)
    assert "which Iceberg can't change it to" in text.run("orders", full_refresh=True).errors[0]


def test_types_that_can_not_grow_or_be_kept_are_refused_by_name(lab: IcebergLab) -> None:
    lab.fill(1)
    for made, told in (
        ("interval 1 day", 'column "n" is interval day, which Iceberg has no place for'),
        ("parse_json('1')", 'column "n" is variant, which Iceberg has no place for'),
    ):
        refused = lab.project(mode="append", transform=f'{{sql: "select *, {made} as n from source"}}').run("orders")
        assert told in refused.errors[0]
    taken = lab.project(mode="append", transform='{sql: "select *, 1 as _file from source"}').run("orders")
    assert 'column "_file" can\'t be in an Iceberg table' in taken.errors[0]
    ok(lab.project(mode="append", transform='{sql: "select *, 1 as n from source"}').run("orders"))
    lab.fill(1, at="2026-01-02 10:00:00", start=2)
    other = lab.project(mode="append", transform='{sql: "select *, 0.5D as n from source"}').run("orders")
    assert 'column "n" was int and is double, which Iceberg can\'t change it to' in other.errors[0]


@pytest.mark.parametrize("table", ["a/b", "..", "x#y", "s.100%"])
def test_names_that_are_no_folders_are_refused(tmp_path: Path, table: str) -> None:
    with pytest.raises(ConfigError, match=r"can't be the name of an Iceberg table|is not the name of a table"):
        IcebergTarget(CONNECTION, a_spec("append", table), tmp_path)


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("rows", [10, None])
def test_rows_that_the_batch_says_are_deleted_go_unless_they_are_newer(
    lake: Lake, rows: int | None, vectors: bool
) -> None:
    orders = lake.begin("upsert", deletion_vectors=vectors)
    columns = f"{COLUMNS}, {DELETED} boolean"
    orders.load([(i, "old", 5, False) for i in range(1, 5)] + [(9, "never", 5, True)], columns)
    assert [i for i, _, _ in orders.rows()] == [1, 2, 3, 4]
    batch = [(1, None, 6, True), (2, None, 5, True), (3, None, 4, True), (4, "new", 6, False), (8, None, 9, True)]
    landed = orders.load(batch, columns, rows=rows)
    assert landed.rows.inserted == 0
    assert (landed.rows.read, landed.rows.updated, landed.rows.deleted) == (5, 1, 2)
    assert orders.rows() == [(3, "old", 5), (4, "new", 6)]
    orders.load([(3, None, 1, True)], columns, rows=rows, later_wins=True)
    assert orders.rows() == [(4, "new", 6)]


def test_partitions_of_an_empty_batch_are_none_and_the_head_lands(lake: Lake) -> None:
    orders = lake.begin("replace_partitions", partition_by=("val",))
    orders.load([(1, "a", 1)])
    assert orders.load([]).rows.inserted == 0
    assert orders.target.find("b2") is not None
    assert orders.rows() == [(1, "a", 1)]


def test_a_range_is_counted_and_clustered_rows_are_in_order(lake: Lake) -> None:
    orders = lake.begin("replace_range", cluster_by=("val",))
    orders.load([(i, "old", i) for i in range(1, 6)])
    ends = {"after": Position.before(2), "until": Position.before(4)}
    landed = orders.load([(2, "new", 2)], replaces=True, **ends)
    assert (landed.rows.inserted, landed.rows.deleted) == (1, 2)
    table = lake.table()
    assert [table.schema().find_column_name(f.source_id) for f in table.sort_order().fields] == ["val"]


def test_a_table_in_a_namespace_and_with_an_odd_name(tmp_path: Path, spark: SparkSession) -> None:
    spec = a_spec("append", """north.east."it's a table"  """.strip())
    target = IcebergTarget(CONNECTION, spec, tmp_path)
    session = own_session(spark)
    frame = session.createDataFrame([(1, "a", 1)], COLUMNS)
    assert target.load(session, frame, a_load(spec, 1)) is not None
    assert target.load(session, frame, a_load(spec, 2)) is not None
    rows = table_at(tmp_path / "lake" / "north" / "east" / "it's a table").scan().to_arrow()
    assert rows.num_rows == 2
    assert target.inspect().top_ordinal == 2
