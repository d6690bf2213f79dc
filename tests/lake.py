"""A shop whose orders are a table of a lake, and a copy of them somewhere else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from floodmark.connections.iceberg import IcebergConnection
from floodmark.connections.iceberg_catalog import Catalog
from floodmark.opening import load
from floodmark.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAKES = {"delta": "{type: delta, path: lake}", "iceberg": "{type: iceberg, path: lake}"}
COPIES = {"delta": "{type: delta, path: copies}", "sqlite": "{type: sqlite, path: copies.db}"}
AT = "2026-01-01 10:00:00"


@dataclass
class LakeShop:
    root: Path
    spark: SparkSession
    lake: Literal["delta", "iceberg"] = "delta"
    copies: Literal["delta", "sqlite"] = "delta"
    table: str = "orders"
    folder: str = "lake"
    namespace: str = "default"

    # -- the source -----------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """In Spark's SQL."""
        if self.lake == "iceberg":
            catalog = Catalog(IcebergConnection(path=self.folder), self.root)
            catalog.attach(self.spark)
            return catalog.sql_name(self.namespace, self.table)
        path = str(self.root / self.folder / self.table).replace("`", "``")
        return f"delta.`{path}`"

    def create(self, columns: str = "id bigint, val string, updated_at timestamp", more: str = "") -> None:
        self.spark.sql(f"CREATE TABLE {self.name} ({columns}) USING {self.lake} {more}")

    def execute(self, statement: str) -> None:
        """`orders` in it is the table."""
        self.spark.sql(statement.replace("orders", self.name)).collect()

    def fill(self, count: int, at: str = AT, start: int = 1) -> None:
        """Each a second later than the one before."""
        self.execute(
            f"INSERT INTO orders SELECT id, concat('v', id), timestamp'{at}Z' + make_interval(0, 0, 0, 0, 0, 0, id) "
            f"FROM range({start}, {start + count})"
        )

    def versions(self) -> list[tuple[int, str]]:
        """With their times, the newest first."""
        if self.lake == "iceberg":
            listed = (
                f"SELECT snapshot_id, string(made_current_at) FROM {self.name}.history ORDER BY made_current_at DESC"
            )
            return [(row[0], row[1]) for row in self.spark.sql(listed).collect()]
        history = self.spark.sql(f"DESCRIBE HISTORY {self.name}").selectExpr("version", "string(timestamp)")
        return [(row[0], row[1]) for row in history.collect()]

    def version(self) -> int:
        return self.versions()[0][0]

    def source_rows(self, columns: str = "id, val") -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.spark.sql(f"SELECT {columns} FROM {self.name}").collect())

    # -- the project ----------------------------------------------------------------------------------------------

    def project(self, mode: str = "upsert", batch_rows: int = 1000, change: str = "", source: str = "") -> Project:
        by = "timestamp, column: updated_at" if mode == "upsert" else "sequence, column: id"
        keys = ", keys: [id]" if mode == "upsert" else ""
        path = self.root / "floodmark.yml"
        path.write_text(
            f"connections:\n  lake: {LAKES[self.lake]}\n  copies: {COPIES[self.copies]}\n"
            "pipelines:\n  orders:\n"
            f"    source: {{connection: lake, {source or f'table: {self.table!r}'}}}\n"
            f"    change: {{{change or f'by: {by}, delay: 0s'}}}\n"
            f"    target: {{connection: copies, table: orders, mode: {mode}{keys}}}\n"
            f"    batch_rows: {batch_rows}\n"
        )
        return load(path, spark=self.spark)

    # -- the target -----------------------------------------------------------------------------------------------

    def target_rows(self, columns: str = "id, val") -> list[tuple[Any, ...]]:
        if self.copies == "sqlite":
            with closing(sqlite3.connect(self.root / "copies.db")) as db:
                return sorted(db.execute(f"SELECT {columns} FROM orders").fetchall())
        found = self.spark.sql(f"SELECT {columns} FROM delta.`{self.root / 'copies' / 'orders'}`")
        return sorted(tuple(row) for row in found.collect())

    def change_target(self, statement: str) -> None:
        if self.copies == "sqlite":
            with closing(sqlite3.connect(self.root / "copies.db")) as db:
                db.execute(statement)
                db.commit()
            return
        self.spark.sql(statement.replace("orders", f"delta.`{self.root / 'copies' / 'orders'}`")).collect()

    def assert_equal(self) -> None:
        assert self.target_rows() == self.source_rows()
