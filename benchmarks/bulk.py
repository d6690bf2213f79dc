"""Rows from Spark into a database: the target's own bulk path against Spark's JDBC writer, and what a small upsert
costs beside a growing table.

    python benchmarks/bulk.py [--rows 1000000] [--changes 10000] [--rounds 3] [--databases postgres mariadb]

The writers take turns within a round: on a machine that others use, only what ran side by side can be compared.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.mariadb import MariadbServer
from tests.services import PostgresServer

from floodmark.connections.mysql import MysqlConnection
from floodmark.connections.postgres import PostgresConnection
from floodmark.model.plan import Work
from floodmark.model.spec import SparkSpec
from floodmark.spark.session import open_session, stop_session
from floodmark.targets.database.target import DatabaseTarget
from floodmark.targets.mysql.target import MysqlTarget
from floodmark.targets.postgres.target import PostgresTarget
from floodmark.testing.target_suite import a_load, a_spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = (
    "id",
    "concat('order ', md5(cast(id AS string))) AS val",
    "id AS seq",
    "cast(id / 7 AS decimal(12, 2)) AS amount",
    "timestamp_micros(1700000000000000 + id * 1000) AS at",
)


class Database:
    def __init__(self, kind: str, server: Any, scratch: Path) -> None:
        self.kind, self.scratch, self.ordinal = kind, scratch, 0
        url = server.create_database()
        self.connection: Any = (PostgresConnection if kind == "postgres" else MysqlConnection)(url=url)

    def target(self, mode: str, table: str) -> DatabaseTarget:
        made: Callable[..., DatabaseTarget] = PostgresTarget if self.kind == "postgres" else MysqlTarget
        return made(self.connection, a_spec(mode, table), self.scratch)

    def load(self, spark: SparkSession, batch: DataFrame, mode: str, table: str) -> float:
        self.ordinal += 1
        began = time.perf_counter()
        landed = self.target(mode, table).load(spark, batch, a_load(a_spec(mode, table), self.ordinal))
        if landed is None:
            raise SystemExit("the target took nothing")
        return time.perf_counter() - began

    def jdbc(self, batch: DataFrame, table: str) -> float:
        address, properties = self.connection.jdbc
        properties = {k: v for k, v in properties.items() if k != "sessionInitStatement"}
        properties |= {"batchsize": "10000", "reWriteBatchedInserts": "true", "useBulkStmts": "true"}
        began = time.perf_counter()
        batch.write.jdbc(address, table, mode="append", properties=properties)
        return time.perf_counter() - began


def rows(spark: SparkSession, first: int, count: int, step: int = 1) -> DataFrame:
    return spark.range(first, first + count * step, step, 2).selectExpr(*COLUMNS)


def compare_writers(spark: SparkSession, database: Database, count: int, rounds: int) -> None:
    ours, theirs = [], []
    for number in range(rounds + 1):
        batch = rows(spark, number * count, count)
        ours.append(database.load(spark, batch, "append", "by_floodmark"))
        theirs.append(database.jdbc(batch, "by_jdbc"))
    mine, other = median(ours[1:]), median(theirs[1:])
    print(
        f"{database.kind:9} {count:,} rows: staged and promoted {mine:.1f} s, Spark's JDBC writer (not exactly once) "
        f"{other:.1f} s = {mine / other:.2f}x",
        flush=True,
    )


def grow(spark: SparkSession, database: Database, sizes: list[int], changes: int, rounds: int) -> None:
    took: dict[int, float] = {}
    held = 0
    for size in sizes:
        database.load(spark, rows(spark, held, size - held), "append" if held else "upsert", "growing")
        held = size
        seconds = []
        for _ in range(rounds + 1):
            batch = (
                rows(spark, 0, changes, size // changes)
                .withColumnRenamed("val", "v")
                .selectExpr("id", "concat(v, rand()) AS val", "seq + 1 AS seq", "amount", "at")
            )
            seconds.append(database.load(spark, batch.localCheckpoint(), "upsert", "growing"))
        took[size] = median(seconds[1:])
        print(
            f"{database.kind:9} {changes:,} changes all over {size:,} rows: {took[size]:.2f} s = "
            f"{took[size] / took[sizes[0]]:.2f}x of the smallest table's",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000_000, 5_000_000])
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--databases", nargs="+", default=["postgres", "mariadb"])
    asked = parser.parse_args()
    servers: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "postgres": PostgresServer,
        "mariadb": MariadbServer,
    }
    with tempfile.TemporaryDirectory() as scratch:
        needs = ["postgres", "mysql"]
        spark = open_session(SparkSpec(), needs=needs, log_file=Path(scratch, "spark.log"), work=Work(asked.rows))
        for kind in asked.databases:
            with servers[kind]() as server:
                database = Database(kind, server, Path(scratch))
                compare_writers(spark, database, asked.rows, asked.rounds)
                grow(spark, database, asked.sizes, asked.changes, asked.rounds)
        stop_session(spark)


if __name__ == "__main__":
    main()
