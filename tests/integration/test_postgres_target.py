"""A Postgres table as the target: its own types, and who may write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from tests.lab import ok
from tests.services import PostgresServer
from tests.warehouse import WarehouseLab

from floodmark.errors import TargetError
from floodmark.opening import load
from floodmark.targets.postgres.staging import ATTEMPT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lab(tmp_path: Path, pg_db: str, spark: SparkSession) -> WarehouseLab:
    return WarehouseLab(tmp_path / "project", "postgres", pg_db, spark, warehouse=pg_db)


def test_a_table_with_types_of_its_own_takes_what_fits(lab: WarehouseLab) -> None:
    lab.ask("CREATE TABLE copies (id numeric PRIMARY KEY, val varchar(3), updated_at timestamptz)")
    lab.fill(3)
    ok(lab.project().run("orders"))
    lab.insert((4, "too long", "2026-01-03 10:00:00"))
    result = lab.project().run("orders")
    told = 'value too long for type character varying(3) (column val, value "too long")'
    assert told in result.errors[0]
    assert len(lab.target_rows()) == 3


def test_who_may_not_write_is_told_before_anything_is_read(lab: WarehouseLab, postgres: PostgresServer) -> None:
    lab.fill(1)
    lab.ask("CREATE ROLE reader LOGIN PASSWORD 'reader-pw'; REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    try:
        lab.lake = f'{{type: postgres, url: "{lab.url.replace("floodmark:s3cret-pw", "reader:reader-pw")}"}}'
        with pytest.raises(TargetError, match="reader may not create tables there") as refused:
            load(lab.write()).plan("orders")
        assert 'GRANT CREATE ON SCHEMA "public" TO "reader"' in str(refused.value.hint)
    finally:
        lab.ask("DROP ROLE reader")


def test_the_attempt_is_a_column_of_the_staging_table_alone(lab: WarehouseLab) -> None:
    lab.fill(1)
    ok(lab.project().run("orders"))
    with psycopg.connect(lab.warehouse) as db:
        names = [c.name for c in db.execute("SELECT * FROM copies").description or ()]
    assert names == ["id", "val", "updated_at"]
    assert ATTEMPT not in names
