"""The contract suite on every target, against the real thing."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql

from floodmark.connections.postgres import PostgresConnection
from floodmark.model.spec import PipelineSpec
from floodmark.targets.delta import DeltaConnection, DeltaTarget
from floodmark.targets.postgres.target import PostgresTarget
from floodmark.testing.target_suite import TargetContract, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TestDelta(TargetContract):
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


class TestPostgres(TargetContract):
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


def _plain(value: Any, zoned: bool) -> Any:
    """PySpark shows moments in this machine's zone, and says nothing of it."""
    if isinstance(value, bytearray):
        return bytes(value)
    return value.astimezone(UTC) if zoned and value is not None else value
