"""Where a storm's rows land: what the file says of it, how far it has come, and what is in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import urlsplit

import psycopg
import pymysql
from tests.warehouse import SHOWN, TABLES

from floodmark.connections.iceberg import IcebergConnection
from floodmark.connections.iceberg_catalog import Catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EndKind = Literal["delta", "iceberg", "postgres", "mariadb"]
SHOWN_BY_SPARK = "date_format(updated_at, 'yyyy-MM-dd HH:mm:ss.SSSSSS') AS at"


class End(Protocol):
    @property
    def connection(self) -> str:
        """As the file declares it."""

    def commits(self) -> int: ...

    def rows(self, spark: SparkSession) -> list[tuple[Any, ...]]: ...


@dataclass(frozen=True)
class DeltaEnd:
    root: Path
    connection: str = "{type: delta, path: lake}"

    def commits(self) -> int:
        return len(list((self.root / "lake" / "orders" / "_delta_log").glob("*.json")))

    def rows(self, spark: SparkSession) -> list[tuple[Any, ...]]:
        table = spark.read.format("delta").load(str(self.root / "lake" / "orders"))
        return sorted(tuple(row) for row in table.selectExpr("id", "val", SHOWN_BY_SPARK).collect())


@dataclass(frozen=True)
class IcebergEnd:
    root: Path
    connection: str = "{type: iceberg, path: lake}"

    def commits(self) -> int:
        """Each load writes one, and publishes it."""
        return len(list((self.root / "lake" / "default" / "orders" / "metadata").glob("snap-*.avro")))

    def rows(self, spark: SparkSession) -> list[tuple[Any, ...]]:
        catalog = Catalog(IcebergConnection(path="lake"), self.root)
        catalog.attach(spark)
        table = spark.table(catalog.sql_name("default", "orders"))
        return sorted(tuple(row) for row in table.selectExpr("id", "val", SHOWN_BY_SPARK).collect())


@dataclass(frozen=True)
class DatabaseEnd:
    """A database of its own: the source's table has the same name."""

    kind: Literal["postgres", "mariadb"]
    url: str

    @property
    def connection(self) -> str:
        return f'{{type: {self.kind}, url: "{self.url}"}}'

    def commits(self) -> int:
        made = {name for (name,) in self._ask(TABLES[self.kind])}
        return int(self._ask("SELECT count(*) FROM floodmark_heads")[0][0]) if "floodmark_heads" in made else 0

    def rows(self, spark: SparkSession) -> list[tuple[Any, ...]]:  # noqa: ARG002 - the database says it
        return sorted(self._ask(f"SELECT id, val, {SHOWN[self.kind]} FROM orders"))

    def _ask(self, statement: str) -> list[tuple[Any, ...]]:
        if self.kind == "postgres":
            with psycopg.connect(self.url) as pg:
                pg.execute("SET timezone = 'UTC'")
                return pg.execute(statement.encode()).fetchall()
        url = urlsplit(self.url)
        my = pymysql.connect(
            host=url.hostname,
            port=url.port or 3306,
            user=url.username,
            password=url.password or "",
            database=url.path.lstrip("/"),
            charset="utf8mb4",
        )
        with my, my.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())


def end_of(kind: EndKind, root: Path, url: str = "") -> End:
    """`url` is that of a database that nobody else uses."""
    if kind == "postgres" or kind == "mariadb":
        return DatabaseEnd(kind, url)
    return DeltaEnd(root) if kind == "delta" else IcebergEnd(root)
