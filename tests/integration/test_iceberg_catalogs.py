"""Catalogs in a database or behind a server, and what is wrong with a connection."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.iceberg import Paused
from tests.rest_catalog import RestCatalog

from floodmark.connections.iceberg import IcebergConnection
from floodmark.connections.iceberg_catalog import Catalog
from floodmark.errors import ConfigError, MissingExtra, TargetError
from floodmark.spark.session import own_session
from floodmark.targets.iceberg.target import IcebergTarget
from floodmark.testing.target_suite import COLUMNS, a_load, a_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def a_jdbc(uri: str) -> IcebergConnection:
    return IcebergConnection.model_validate({"path": "lake", "catalog": {"type": "jdbc", "uri": uri, "name": "shop"}})


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_catalog_in_a_database(
    kind: str, tmp_path: Path, spark: SparkSession, request: pytest.FixtureRequest
) -> None:
    uri = "sqlite:///catalog.db" if kind == "sqlite" else request.getfixturevalue("pg_db")
    connection, spec = a_jdbc(uri), a_spec("upsert")
    target, session = IcebergTarget(connection, spec, tmp_path), own_session(spark)
    assert not target.inspect().exists
    assert not (tmp_path / "catalog.db").exists(), "a look makes nothing"
    first = session.createDataFrame([(1, "a", 1), (2, "b", 1)], COLUMNS)
    second = session.createDataFrame([(2, "c", 2)], COLUMNS)
    assert target.load(session, first, a_load(spec, 1)) is not None
    assert target.load(session, second, a_load(spec, 2, rows=1)) is not None
    assert target.load(session, second, a_load(spec, 2, batch="another")) is None
    state = target.inspect()
    assert [landed.head.batch for landed in state.landed] == ["b2", "b1"]
    rows = session.table("shop.default.orders").collect()
    assert sorted(map(tuple, rows)) == [(1, "a", 1), (2, "c", 2)]
    other = IcebergTarget(a_jdbc("sqlite:///other.db"), spec, tmp_path)
    with pytest.raises(ConfigError, match="two catalogs are called shop"):
        other.load(session, first, a_load(spec, 1))


def test_a_catalog_behind_a_server(tmp_path: Path, spark: SparkSession) -> None:
    """One load after the other, and one that was overtaken: there the server says no."""
    with RestCatalog(tmp_path / "server") as url:
        connection = IcebergConnection.model_validate({"catalog": {"type": "rest", "uri": url}})
        spec, session = a_spec("upsert"), own_session(spark)
        quick, slow = IcebergTarget(connection, spec, tmp_path), Paused(connection, spec, tmp_path)
        assert not quick.inspect().exists
        first = session.createDataFrame([(1, "a", 1), (2, "b", 1)], COLUMNS)
        second = session.createDataFrame([(2, "c", 2)], COLUMNS)
        assert quick.load(session, first, a_load(spec, 1)) is not None
        Paused.meanwhile = staticmethod(lambda: quick.load(session, second, a_load(spec, 2, batch="quick")))
        assert slow.load(session, second, a_load(spec, 2, batch="slow")) is None
        assert [landed.head.batch for landed in quick.inspect().landed] == ["quick", "b1"]
        rows = session.table(Catalog(connection, tmp_path).sql_name("default", "orders")).collect()
        assert sorted(map(tuple, rows)) == [(1, "a", 1), (2, "c", 2)]


def test_a_catalog_that_is_not_there_is_told_without_its_password(tmp_path: Path) -> None:
    spec = a_spec("append")
    gone = IcebergTarget(a_jdbc("postgresql://me:hunter22@127.0.0.1:1/shop"), spec, tmp_path)
    with pytest.raises(TargetError, match="the catalog can't be asked") as caught:
        gone.inspect()
    assert "hunter22" not in str(caught.value)
    with pytest.raises(TargetError, match="there is no folder"):
        IcebergTarget(a_jdbc("sqlite:///nowhere/catalog.db"), spec, tmp_path).inspect()


def test_a_rest_catalog_as_spark_and_pyiceberg_are_told_of_it(tmp_path: Path) -> None:
    declared = {"type": "rest", "uri": "http://127.0.0.1:1/catalog", "properties": {"token": "s3cr3t", "retries": 1}}
    connection = IcebergConnection.model_validate({"path": "warehouse", "catalog": declared})
    assert connection.secrets == ("s3cr3t",)
    assert connection.java == ("iceberg",)
    catalog = Catalog(connection, tmp_path)
    told = {"type": "rest", "uri": "http://127.0.0.1:1/catalog", "warehouse": "warehouse", "token": "s3cr3t"}
    assert told.items() <= catalog.settings.items()
    assert catalog.folder is None
    with pytest.raises(TargetError, match=r"the catalog can't be asked: Connection refused$") as caught:
        catalog.metadata(("default",), "orders")
    assert caught.value.transient


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({}, "set `path`"),
        ({"path": "s3://bucket/lake"}, "a catalog of files can't be on s3://"),
        ({"path": "lake", "catalog": {"type": "jdbc"}}, "needs `catalog.uri`"),
        ({"path": "lake", "catalog": {"type": "jdbc", "uri": "oracle://x"}}, "begins with sqlite:// or postgresql://"),
        ({"path": "lake", "catalog": {"uri": "http://x"}}, "is for a catalog of type jdbc or rest"),
    ],
)
def test_connections_that_are_not_whole(declared: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told.replace("`", ".")):
        IcebergConnection.model_validate(declared)


def test_without_pyiceberg_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog", None)
    with pytest.raises(MissingExtra) as caught:
        IcebergTarget(a_jdbc("sqlite:///catalog.db"), a_spec("append"), tmp_path).inspect()
    assert caught.value.hint == "pip install 'floodmark[iceberg]'"


def test_metadata_that_can_not_be_read_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "lake" / "default" / "orders" / "metadata"
    folder.mkdir(parents=True)
    target = IcebergTarget(IcebergConnection(path="lake"), a_spec("append"), tmp_path)
    assert not target.inspect().exists
    (folder / "v3.metadata.json").write_text("{")
    with pytest.raises(TargetError, match=r"can't read the metadata of default\.orders"):
        target.inspect()
