"""Every kind of target behind the lab, with a table in it that somebody else has made."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import psycopg
import pymysql
import pytest
from deltalake import DeltaTable, Field, Schema
from tests.lab import Lab

from floodmark.connections.iceberg import IcebergConnection
from floodmark.connections.iceberg_catalog import Catalog
from floodmark.connections.mysql import MysqlConnection
from floodmark.spark.session import own_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAKES = ("delta", "iceberg", "parquet")
DATABASES = ("postgres", "mariadb", "sqlite", "duckdb")
KINDS = (*LAKES, *DATABASES)
DECLARED = {
    "delta": "{type: delta, path: lake}",
    "iceberg": "{type: iceberg, path: lake}",
    "parquet": "{type: parquet, path: lake}",
    "sqlite": "{type: sqlite, path: warehouse.db}",
    "duckdb": "{type: duckdb, path: warehouse.duckdb}",
}
TYPES = {
    "delta": {"bigint": "long", "text": "string"},
    "iceberg": {"text": "string"},
    "sqlite": {"bigint": "INTEGER", "text": "TEXT", "timestamp": "DATETIME"},
    "postgres": {"timestamp": "timestamptz"},
    "mariadb": {"timestamp": "datetime(6)"},
    "duckdb": {"timestamp": "timestamptz"},
}
ROWS = {"id": "bigint", "val": "text", "updated_at": "timestamp"}
"""The columns of the lab's rows."""


@dataclass(frozen=True)
class End:
    kind: str
    lab: Lab
    url: str = ""

    def make(self, columns: Mapping[str, str], partition_by: Sequence[str] = ()) -> None:
        """An empty table `orders`."""
        kinds = {name: TYPES.get(self.kind, {}).get(kind, kind) for name, kind in columns.items()}
        if self.kind == "delta":
            schema = Schema([Field(name, kind) for name, kind in kinds.items()])  # type: ignore[arg-type]
            DeltaTable.create(self.lab.table, schema, partition_by=list(partition_by) or None)
            return
        declared = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        if self.kind != "iceberg":
            self.execute(f"CREATE TABLE orders ({declared})")
            return
        catalog, session = self._catalog()
        parts = f" PARTITIONED BY ({', '.join(partition_by)})" if partition_by else ""
        session.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog.sql_name('default')}")
        session.sql(f"CREATE TABLE {catalog.sql_name('default', 'orders')} ({declared}) USING iceberg{parts}")

    def columns(self) -> list[str]:
        """As they are now; none where there is no table."""
        if self.kind == "delta":
            there = DeltaTable.is_deltatable(self.lab.table)
            return [field.name for field in DeltaTable(self.lab.table).schema().fields] if there else []
        if self.kind == "iceberg":
            metadata = self._catalog()[0].metadata(("default",), "orders")
            return [] if metadata is None else [field["name"] for field in metadata["schemas"][-1]["fields"]]
        if self.kind == "sqlite":
            return [row[1] for row in self.execute("PRAGMA table_info(orders)")]
        place = {"mariadb": "database()", "postgres": "'public'", "duckdb": "'main'"}[self.kind]
        found = self.execute(
            "SELECT column_name FROM information_schema.columns "
            f"WHERE table_name = 'orders' AND table_schema = {place} ORDER BY ordinal_position"
        )
        return [name for (name,) in found]

    def rows(self) -> int:
        if self.kind == "delta":
            assert self.lab.spark is not None
            return self.lab.spark.read.format("delta").load(self.lab.table).count()
        if self.kind == "iceberg":
            catalog, session = self._catalog()
            return session.table(catalog.sql_name("default", "orders")).count()
        return int(self.execute("SELECT count(*) FROM orders")[0][0])

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self.lab.root / "warehouse.db", isolation_level=None)) as db:
                return db.execute(statement).fetchall()
        if self.kind == "duckdb":
            with duckdb.connect(self.lab.root / "warehouse.duckdb") as file:
                return file.execute(statement).fetchall()
        if self.kind == "postgres":
            with psycopg.connect(self.url, autocommit=True) as pg:
                done = pg.execute(statement.encode())
                return done.fetchall() if done.description else []
        keywords = MysqlConnection(url=self.url).keywords  # type: ignore[arg-type]
        with closing(pymysql.connect(**keywords)) as my, my.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def _catalog(self) -> tuple[Catalog, SparkSession]:
        assert self.lab.spark is not None
        catalog, session = Catalog(IcebergConnection(path="lake"), self.lab.root), own_session(self.lab.spark)
        catalog.attach(session)
        return catalog, session


def open_end(kind: str, root: Path, spark: SparkSession, request: pytest.FixtureRequest) -> End:
    """Rows come from a SQLite file."""
    database = {"postgres": "pg_db", "mariadb": "my_db"}.get(kind)
    url = request.getfixturevalue(database) if database else ""
    lake = DECLARED.get(kind) or f'{{type: {kind}, url: "{url}"}}'
    return End(kind, Lab(root / "project", "sqlite", "", spark, lake=lake), url)
