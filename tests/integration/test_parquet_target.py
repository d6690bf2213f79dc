"""Parquet files as the target: what a manifest names is the table, and nothing else."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.dataset
import pytest
from tests.lab import Lab, load_after_load

import floodmark
from floodmark.errors import ConfigError, TargetError
from floodmark.model.names import DELETED
from floodmark.model.outcome import Landed
from floodmark.model.spec import PipelineSpec
from floodmark.opening import load
from floodmark.targets.parquet import manifests, tidy
from floodmark.targets.parquet.places import BucketPlace, LocalPlace, Place
from floodmark.targets.parquet.reader import parquet_table
from floodmark.targets.parquet.target import ParquetConnection, ParquetTarget
from floodmark.testing.target_suite import AT, COLUMNS, a_load, a_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAKE = "{type: parquet, path: files}"


class Table:
    """A target and loads into it, read back by somebody who knows nothing of Spark."""

    def __init__(
        self, root: Path, spark: SparkSession, spec: PipelineSpec, keep: timedelta = timedelta(days=7)
    ) -> None:
        self.spark, self.spec, self.folder = spark, spec, root / "files" / "orders"
        self.target = ParquetTarget(ParquetConnection(path="files", keep_removed=keep), spec, root)
        self.ordinal = 0

    def put(self, *rows: tuple[Any, ...], columns: str = COLUMNS, days: int = 0, **asked: Any) -> Landed:
        self.ordinal += 1
        order = a_load(self.spec, self.ordinal, **{"rows": len(rows), **asked})
        order = replace(order, head=order.head.but(at=AT + timedelta(days=days)))
        frame = self.spark.createDataFrame(list(rows), columns).coalesce(1)
        landed = self.target.load(self.spark, frame, order)
        assert landed is not None
        return landed

    def rows(self) -> list[tuple[Any, ...]]:
        found = parquet_table(self.folder)
        if not found.files:
            return []
        return sorted(duckdb.read_parquet(found.files, union_by_name=True).select("id", "val", "seq").fetchall())

    @property
    def files(self) -> set[str]:
        return set(parquet_table(self.folder).files)

    @property
    def on_disk(self) -> set[str]:
        return {str(path) for path in (self.folder / "data").rglob("*") if path.is_file()}


@pytest.fixture
def table(tmp_path: Path, spark: SparkSession) -> Callable[..., Table]:
    return lambda spec, **options: Table(tmp_path / "a [1]* folder", spark, spec, **options)


@pytest.fixture
def lab(tmp_path: Path, spark: SparkSession) -> Lab:
    return Lab(tmp_path / "project", "sqlite", "", spark, lake=LAKE)


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_load_after_load_and_the_state_rebuilt_from_the_manifests(
    lab: Lab, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "CHECKPOINT", 3)
    load_after_load(lab, mode, batch_rows=6)
    found = floodmark.parquet_table(lab.root / "files" / "orders")
    read = pyarrow.dataset.dataset(found.files).to_table(columns=["id", "val"]).to_pylist()
    assert sorted((row["id"], row["val"]) for row in read) == [(i, f"v{i}") for i in range(1, 36)]


def test_an_upsert_rewrites_only_the_files_that_hold_what_changes(table: Callable[..., Table]) -> None:
    orders = table(a_spec("upsert"))
    orders.put((1, "a", 1), (2, "b", 1))
    orders.put((3, "c", 1), (4, "d", 1))
    first, second = orders.files
    landed = orders.put((3, "new", 2), (1, "older", 0), (5, "e", 1))
    assert (landed.rows.read, landed.rows.inserted, landed.rows.updated) == (3, 1, 1)
    assert len(orders.files & {first, second}) == 1
    assert orders.rows() == [(1, "a", 1), (2, "b", 1), (3, "new", 2), (4, "d", 1), (5, "e", 1)]
    before = orders.files
    assert orders.put((3, "new", 2), (4, "d", 1)).rows.loaded == 0
    assert orders.files == before


def test_a_partition_of_the_key_leaves_all_others_alone(table: Callable[..., Table]) -> None:
    orders = table(a_spec("upsert", keys=("id", "val"), partition_by=("val",)))
    orders.put((1, "a", 1), (1, "b", 1), (1, "", 1))
    before = orders.files
    assert len(before) == 3
    assert orders.put((1, "b", 2), (2, "b", 1)).rows.updated == 1
    assert len(orders.files & before) == 2
    assert orders.rows() == [(1, "", 1), (1, "a", 1), (1, "b", 2), (2, "b", 1)]


def test_a_row_whose_partition_changes_is_there_once(table: Callable[..., Table]) -> None:
    orders = table(a_spec("upsert", partition_by=("val",)))
    orders.put((1, "a", 1), (2, "a", 1))
    orders.put((1, "b", 2))
    assert orders.rows() == [(1, "b", 2), (2, "a", 1)]


def test_deletes_in_the_batch(table: Callable[..., Table]) -> None:
    orders = table(a_spec("upsert"))
    columns = f"{COLUMNS}, {DELETED} boolean"
    orders.put((1, "a", 1, None), (2, "b", 5, False), (3, "never there", 1, True), columns=columns)
    assert orders.rows() == [(1, "a", 1), (2, "b", 5)]
    landed = orders.put((1, "a", 1, True), (2, "older", 4, True), (4, "unknown", 1, True), columns=columns)
    assert (landed.rows.inserted, landed.rows.updated, landed.rows.deleted) == (0, 0, 1)
    assert orders.rows() == [(2, "b", 5)]
    assert orders.put((2, None, 4, True), columns=columns, later_wins=True).rows.deleted == 1
    assert orders.rows() == []
    assert DELETED not in str(parquet_table(orders.folder).schema)


def test_two_runners_want_the_same_version_and_one_of_them_has_it(
    tmp_path: Path, spark: SparkSession, table: Callable[..., Table]
) -> None:
    both = threading.Barrier(2, timeout=120)

    class Racing(ParquetTarget):
        def _written(self, *args: Any) -> Any:
            manifest = super()._written(*args)
            both.wait()
            return manifest

    orders = table(a_spec("append"))
    orders.put((1, "a", 1))

    def race(name: str, spec: PipelineSpec, ordinal: int) -> Landed | None:
        target = Racing(ParquetConnection(path="files"), spec, tmp_path / "a [1]* folder")
        frame = spark.createDataFrame([(2, name, 2)], COLUMNS)
        return target.load(spark, frame, a_load(spec, ordinal, batch=name))

    with ThreadPoolExecutor() as pool:
        results = list(pool.map(race, ("x", "y"), (orders.spec,) * 2, (2, 2)))
    (won,) = (landed for landed in results if landed is not None)
    assert orders.rows() == [(1, "a", 1), (2, won.head.batch, 2)]
    assert orders.target.find({"x": "y", "y": "x"}[won.head.batch]) is None
    assert orders.on_disk == orders.files
    other = orders.spec.model_copy(update={"name": "another"})
    with ThreadPoolExecutor() as pool:
        tries = [pool.submit(race, *ask) for ask in (("z", orders.spec, 3), ("o", other, 1))]
    (error,) = (e for e in (t.exception() for t in tries) if e is not None)
    assert isinstance(error, TargetError)
    assert error.transient
    assert len(orders.rows()) == 3


def test_what_was_replaced_stays_for_a_while_and_goes_with_a_later_load(table: Callable[..., Table]) -> None:
    orders = table(a_spec("replace"))
    orders.put((1, "a", 1), full=True)
    first = orders.files
    orders.put((2, "b", 1), full=True)
    orders.put((3, "c", 1), full=True, days=6)
    assert first < orders.on_disk
    orders.put((4, "d", 1), full=True, days=8)
    assert not first & orders.on_disk
    assert len(orders.on_disk) == 3  # what the last two loads have replaced is younger
    assert orders.rows() == [(4, "d", 1)]


def test_old_manifests_go_and_the_table_stays(table: Callable[..., Table], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "CHECKPOINT", 2)
    monkeypatch.setattr(tidy, "KEPT", 4)
    orders = table(a_spec("append"), keep=timedelta(0))
    for number in range(1, 10):
        orders.put((number, "a", number), days=number)
    assert len(os.listdir(orders.folder / "_floodmark" / "manifests")) == 5
    state = orders.target.inspect(deep=True)
    assert [landed.head.ordinal for landed in state.landed] == [9, 8, 7, 6, 5]
    assert len(orders.rows()) == 9


def test_a_reader_beside_loads_sees_each_of_them_whole_or_not_at_all(table: Callable[..., Table]) -> None:
    orders = table(a_spec("upsert"))
    orders.put(*((i, "0", 0) for i in range(50)))
    ended = threading.Event()

    def look() -> set[tuple[int, frozenset[str]]]:
        seen = set()
        while not ended.is_set():
            rows = pyarrow.dataset.dataset(parquet_table(orders.folder).files).to_table(columns=["val"])
            seen.add((rows.num_rows, frozenset(rows.column("val").to_pylist())))
        return seen

    with ThreadPoolExecutor() as pool:
        looking = pool.submit(look)
        try:
            for number in range(1, 6):
                orders.put(*((i, str(number), number) for i in range(50)))
        finally:
            ended.set()
    assert looking.result() <= {(50, frozenset({str(number)})) for number in range(6)}


def test_a_type_that_grew_and_a_column_that_is_newer_than_its_file(tmp_path: Path, spark: SparkSession) -> None:
    orders = Table(tmp_path, spark, a_spec("append"))
    kinds = "id int, val string, seq bigint, day date, part decimal(5,2)"
    orders.put((1, "a", 1, AT.date(), Decimal("1.5")), columns=kinds)
    wider = "id bigint, val string, seq bigint, day timestamp_ntz, part decimal(12,4), more array<int>"
    orders.put((2**40, "b", 2, AT.replace(tzinfo=None), None, [1]), columns=wider)
    from pyspark.sql.types import StructType

    found = parquet_table(orders.folder)
    rows = orders.spark.read.schema(StructType.fromJson(found.schema)).parquet(*found.files)
    noon = datetime(2026, 11, 15, 12)
    assert sorted(tuple(row) for row in rows.select("id", "more", "day", "part").collect()) == [
        (1, None, noon.replace(hour=0), Decimal("1.50")),
        (2**40, [1], noon, None),
    ]
    with pytest.raises(TargetError, match="id was bigint and is string"):
        orders.put(("x", "c", 3), columns="id string, val string, seq bigint")


def test_foreign_files_a_table_outside_and_a_history_are_refused(lab: Lab) -> None:
    lab.fill(1)
    (lab.root / "files" / "orders").mkdir(parents=True)
    (lab.root / "files" / "orders" / "somebody's.parquet").touch()
    with pytest.raises(TargetError, match=r"holds somebody's\.parquet"):
        load(lab.write()).plan("orders")
    with pytest.raises(ConfigError, match="leaves the connection's folder"):
        load(lab.write(target="{connection: lake, table: ../x, mode: upsert, keys: [id]}")).plan("orders")
    with pytest.raises(ConfigError, match="has no mode history"):
        load(lab.write(target="{connection: lake, table: x, mode: history, keys: [id]}")).plan("orders")
    lab.lake = "{type: parquet, path: floodmark.yml}"
    with pytest.raises(TargetError, match="is not a folder"):
        load(lab.write()).plan("orders")


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "folder":
        return LocalPlace(tmp_path / "files" / "orders")
    return BucketPlace(f"{request.getfixturevalue('s3_bucket')}/files/orders")


def test_a_place_keeps_what_was_created_first(place: Place) -> None:
    assert place.read("_floodmark/manifests/1.json") is None
    assert place.names("_floodmark/manifests") == []
    assert place.create("_floodmark/manifests/1.json", b"first")
    assert not place.create("_floodmark/manifests/1.json", b"second")
    assert place.read("_floodmark/manifests/1.json") == b"first"
    assert place.create("data/attempt/p=1/part-0.parquet", b"rows")
    assert place.create("data/attempt/_SUCCESS", b"")
    assert place.written("data/attempt") == ["p=1/part-0.parquet"]
    assert place.names("_floodmark/manifests") == ["1.json"]
    place.remove(["data/attempt/p=1/part-0.parquet", "data/never/there.parquet"])
    assert place.written("data/attempt") == []
    assert place.create("data/other/part-0.parquet", b"rows")
    place.remove_folder("data/other")
    assert place.read("data/other/part-0.parquet") is None


def test_manifests_race_in_a_bucket(s3_bucket: str) -> None:
    place = BucketPlace(f"{s3_bucket}/orders")
    head = a_load(a_spec("append"), 1).head

    def made(attempt: str) -> manifests.Manifest:
        columns = {"type": "struct", "fields": []}
        return manifests.Manifest(
            version=1,
            table_id="t",
            attempt=attempt,
            head=head,
            rows={},
            columns=columns,
            files=(f"{attempt}/x",),
            total=1,
        )

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda name: manifests.Manifests(place).create(made(name)), map(str, range(8))))
    assert results.count(True) == 1
    found = parquet_table(f"{s3_bucket}/orders")
    assert found.files == [f"s3a://{s3_bucket.removeprefix('s3://')}/orders/data/{results.index(True)}/x"]
