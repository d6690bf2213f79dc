"""What a load costs a server follows the rows that it brings, and not those that the table holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floodmark.connections.mysql import MysqlConnection
from floodmark.connections.postgres import PostgresConnection
from floodmark.model.names import DELETED
from floodmark.targets.database.heads import Heads
from floodmark.targets.database.session import Session
from floodmark.targets.database.target import DatabaseTarget
from floodmark.targets.mysql.target import MysqlTarget
from floodmark.targets.postgres.target import PostgresTarget
from floodmark.testing.target_suite import a_load, a_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HELD, BROUGHT = 500_000, 100
COLUMNS = {"upsert": "id, val, seq", "history": "id, val, seq, valid_from, is_current"}
VALUES = {"upsert": "n, 'old', n", "history": "n, 'old', n, n, 1 = 1"}
NUMBERS = {
    "postgres": f"generate_series(2, {HELD}) AS n",
    "mariadb": f"(SELECT seq AS n FROM seq_2_to_{HELD}) AS numbers",
}


@pytest.fixture(params=NUMBERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], DatabaseTarget]:
    if kind == "postgres":
        there = PostgresConnection(url=request.getfixturevalue("pg_db"))
        return lambda mode: PostgresTarget(there, a_spec(mode, "copies"), tmp_path)
    here = MysqlConnection(url=request.getfixturevalue("my_db"))
    return lambda mode: MysqlTarget(here, a_spec(mode, "copies"), tmp_path)


def rows_read(db: Session, kind: str) -> int:
    """By this transaction from the table; in MariaDB by the session, from all tables."""
    if kind == "postgres":
        found = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'copies'"
        return int(db.ask(found)[0][0])
    return sum(int(value) for _, value in db.ask("SHOW SESSION STATUS LIKE 'Handler_read%'"))


@pytest.mark.parametrize("mode", ["upsert", "history"])
def test_rows_are_looked_up_by_the_key(
    opened: Callable[[str], DatabaseTarget], kind: str, mode: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, spec = opened(mode), a_spec(mode, "copies")
    target.load(spark, spark.sql("SELECT 1L AS id, 'old' AS val, 1L AS seq"), a_load(spec, 1))
    with target._connected() as db:
        db.run(f"INSERT INTO copies ({COLUMNS[mode]}) SELECT {VALUES[mode]} FROM {NUMBERS[kind]}")
        if kind == "postgres":
            db.run("ANALYZE copies")  # or else the server gets round to it a minute later
    seen: list[int] = []
    count = Heads.count

    def watched(heads: Heads, db: Session, *arguments: Any) -> None:
        seen.append(rows_read(db, kind))
        count(heads, db, *arguments)

    monkeypatch.setattr(Heads, "count", watched)
    brought = spark.range(1, BROUGHT + 1).selectExpr(
        f"id * {HELD // BROUGHT} + 1 AS id", "'new' AS val", f"{HELD} + id AS seq", f"id % 4 = 0 AS {DELETED}"
    )
    landed = target.load(spark, brought, a_load(spec, 2))
    assert landed is not None
    changed = (landed.rows.inserted or 0) + (landed.rows.updated or 0) + (landed.rows.deleted or 0)
    assert changed >= BROUGHT - 1
    assert 0 < seen[0] < HELD / 10


def test_a_range_is_found_by_an_index(opened: Callable[[str], DatabaseTarget], spark: SparkSession) -> None:
    target, spec = opened("replace_range"), a_spec("replace_range", "copies")
    target.load(spark, spark.sql("SELECT 1L AS id, 'a' AS val, 1L AS seq"), a_load(spec, 1))
    found = {
        "postgres": "SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indexrelid "
        "WHERE indrelid = 'copies'::regclass",
        "mariadb": "SELECT column_name FROM information_schema.statistics WHERE table_name = 'copies'",
    }["postgres" if isinstance(target, PostgresTarget) else "mariadb"]
    with target._connected() as db:
        assert db.ask(found) == [("seq",)]
