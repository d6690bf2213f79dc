"""The contract suite on every target, against the real thing."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import psycopg
import pytest
from psycopg import sql

from floodmark.connections.delta import DeltaConnection
from floodmark.connections.duckdb import DuckdbConnection
from floodmark.connections.iceberg import IcebergConnection
from floodmark.connections.iceberg_catalog import Catalog
from floodmark.connections.mysql import MysqlConnection
from floodmark.connections.names import quote
from floodmark.connections.postgres import PostgresConnection
from floodmark.connections.sqlite import SqliteConnection
from floodmark.model.spec import PipelineSpec
from floodmark.targets.delta.target import DeltaTarget
from floodmark.targets.duckdb.target import DuckdbTarget
from floodmark.targets.iceberg.target import IcebergTarget
from floodmark.targets.mysql.target import MysqlTarget
from floodmark.targets.parquet.reader import parquet_table
from floodmark.targets.parquet.target import ParquetConnection, ParquetTarget
from floodmark.targets.postgres.target import PostgresTarget
from floodmark.targets.sqlite.target import SqliteTarget
from floodmark.testing.history_suite import HistoryContract
from floodmark.testing.target_suite import PartitionsContract, TargetContract, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TestDelta(HistoryContract, PartitionsContract, TargetContract):
    @pytest.fixture
    def world(self, tmp_path: Path, spark: SparkSession) -> World:
        connection = DeltaConnection(path="lake")

        def read(table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
            found = spark.read.format("delta").load(str(tmp_path / "lake" / table))
            chosen = found.select(*(f"`{c.replace('`', '``')}`" for c in columns))
            zoned = [field.dataType.typeName() == "timestamp" for field in chosen.schema.fields]
            return [tuple(map(_plain, row, zoned)) for row in chosen.collect()]

        return World(
            open=lambda spec: DeltaTarget(connection, spec, tmp_path),
            read=read,
            drop=lambda table: shutil.rmtree(tmp_path / "lake" / table),
        )


class TestIceberg(HistoryContract, PartitionsContract, TargetContract):
    @pytest.fixture
    def world(self, tmp_path: Path, spark: SparkSession) -> World:
        connection = IcebergConnection(path="lake")
        catalog = Catalog(connection, tmp_path)
        catalog.attach(spark)

        def read(table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
            found = spark.table(catalog.sql_name("default", table))
            chosen = found.select(*(f"`{c.replace('`', '``')}`" for c in columns))
            zoned = [field.dataType.typeName() == "timestamp" for field in chosen.schema.fields]
            return [tuple(map(_plain, row, zoned)) for row in chosen.collect()]

        return World(
            open=lambda spec: IcebergTarget(connection, spec, tmp_path),
            read=read,
            drop=lambda table: (spark.sql(f"DROP TABLE {catalog.sql_name('default', table)}"), None)[1],
        )


class TestPostgres(HistoryContract, TargetContract):
    @pytest.fixture
    def world(self, tmp_path: Path, pg_db: str) -> World:
        connection = PostgresConnection(url=pg_db)  # type: ignore[arg-type]

        def open_target(spec: PipelineSpec) -> PostgresTarget:
            return PostgresTarget(connection, spec, tmp_path)

        def read(table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
            names = sql.SQL(", ").join(map(sql.Identifier, columns))
            with psycopg.connect(pg_db) as db:
                db.execute("SET timezone = 'UTC'")
                return db.execute(sql.SQL("SELECT {} FROM {}").format(names, sql.Identifier(table))).fetchall()

        def drop(table: str) -> None:
            with psycopg.connect(pg_db) as db:
                db.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(table)))

        return World(open=open_target, read=read, drop=drop)


class TestMariadb(HistoryContract, TargetContract):
    @pytest.fixture
    def world(self, tmp_path: Path, my_db: str) -> World:
        connection = MysqlConnection(url=my_db)  # type: ignore[arg-type]

        def ask(statement: str) -> list[tuple[Any, ...]]:
            with connection.connect(writes=True) as db, db.cursor() as cursor:
                cursor.execute(statement)
                return list(cursor.fetchall())

        def read(table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
            found = ask(f"SELECT {', '.join(map(quote, columns))} FROM {quote(table)}")
            return [tuple(_of_mysql(v, c) for c, v in zip(columns, row, strict=True)) for row in found]

        return World(
            open=lambda spec: MysqlTarget(connection, spec, tmp_path),
            lowest=-1e308,
            read=read,
            drop=lambda table: (ask(f"DROP TABLE {quote(table)}"), None)[1],
        )


def _of_mysql(value: Any, column: str) -> Any:
    """Moments are kept in UTC."""
    if column == "yes" and value is not None:
        return bool(value)
    return value.replace(tzinfo=UTC) if column == "at" and value is not None else value


class TestSqlite(HistoryContract, TargetContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        connection = SqliteConnection(path="warehouse.db")

        def ask(statement: str) -> list[tuple[Any, ...]]:
            with closing(sqlite3.connect(tmp_path / "warehouse.db", isolation_level=None)) as db:
                return db.execute(statement).fetchall()

        def read(table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
            declared = {row[1]: row[2] for row in ask(f"PRAGMA table_info({quote(table)})")}
            names = ", ".join(map(quote, columns))
            return [
                tuple(_of_sqlite(v, declared[c], c) for c, v in zip(columns, row, strict=True))
                for row in ask(f"SELECT {names} FROM {quote(table)}")
            ]

        return World(
            open=lambda spec: SqliteTarget(connection, spec, tmp_path),
            read=read,
            drop=lambda table: (ask(f"DROP TABLE {quote(table)}"), None)[1],
        )


def _of_sqlite(value: Any, declared: str, column: str) -> Any:
    """As the declared type means it; moments are kept in UTC."""
    if value is None:
        return None
    if declared == "DATETIME":
        assert isinstance(value, str)
        moment = datetime.fromisoformat(value)
        return moment.replace(tzinfo=UTC) if column == "at" else moment
    if declared == "DATE":
        return date.fromisoformat(value)
    if declared.startswith("DECIMAL_TEXT"):
        assert isinstance(value, str)
        return Decimal(value)
    return bool(value) if declared == "BOOLEAN" else value


class TestDuckdb(HistoryContract, TargetContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        connection = DuckdbConnection(path="warehouse.duckdb")

        def read(table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
            with duckdb.connect(tmp_path / "warehouse.duckdb", read_only=True) as db:
                db.execute("SET TimeZone = 'UTC'")
                found = db.sql(f"SELECT {', '.join(map(quote, columns))} FROM {quote(table)}").to_arrow_table()
                return list(zip(*(c.to_pylist() for c in found.columns), strict=True))

        def drop(table: str) -> None:
            with duckdb.connect(tmp_path / "warehouse.duckdb") as db:
                db.execute(f"DROP TABLE {quote(table)}")

        return World(open=lambda spec: DuckdbTarget(connection, spec, tmp_path), read=read, drop=drop)


class TestParquet(PartitionsContract, TargetContract):
    @pytest.fixture
    def world(self, tmp_path: Path, spark: SparkSession) -> World:
        connection = ParquetConnection(path="files")

        def read(table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
            from pyspark.sql.types import StructType

            found = parquet_table(tmp_path / "files" / table)
            if not found.files:
                return []
            rows = spark.read.schema(StructType.fromJson(found.schema)).parquet(*found.files)
            chosen = rows.select(*(f"`{c.replace('`', '``')}`" for c in columns))
            zoned = [field.dataType.typeName() == "timestamp" for field in chosen.schema.fields]
            return [tuple(map(_plain, row, zoned)) for row in chosen.collect()]

        return World(
            open=lambda spec: ParquetTarget(connection, spec, tmp_path),
            read=read,
            drop=lambda table: shutil.rmtree(tmp_path / "files" / table),
        )


def _plain(value: Any, zoned: bool) -> Any:
    """PySpark shows moments in this machine's zone, and says nothing of it."""
    if isinstance(value, bytearray):
        return bytes(value)
    return value.astimezone(UTC) if zoned and value is not None else value
