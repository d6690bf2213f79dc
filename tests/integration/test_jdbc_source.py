"""A database that is known by its JDBC driver only: H2 in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.h2 import H2, H2Shop
from tests.lab import ok
from tests.services import run_cli

from floodmark.errors import ConfigError, SourceError, redact
from floodmark.opening import load
from floodmark.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Shop(H2Shop):
    def project(self, source: str = "table: PUBLIC.ORDERS", mode: str = "upsert", batch_rows: int = 100) -> Project:
        by = "timestamp, column: UPDATED_AT" if mode == "upsert" else "sequence, column: ID"
        keys = ", keys: [ID]" if mode == "upsert" else ""
        path = self.root / "floodmark.yml"
        path.write_text(
            "connections:\n"
            f"  shop: {{type: jdbc, url: '{self.url}', driver: org.h2.Driver, jars: ['{H2}'], user: sa}}\n"
            "  lake: {type: delta, path: lake}\n"
            "pipelines:\n  orders:\n"
            f"    source: {{connection: shop, {source}}}\n"
            f"    change: {{by: {by}, delay: 0s}}\n"
            f"    target: {{connection: lake, table: orders, mode: {mode}{keys}}}\n"
            f"    batch_rows: {batch_rows}\n"
        )
        return load(path, spark=self.spark)


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Shop:
    return Shop(tmp_path, spark)


@pytest.mark.parametrize("mode", ["upsert", "append"])
def test_what_changed_is_moved_in_slices_and_then_nothing(shop: Shop, mode: str) -> None:
    shop.fill(1, 250)
    project = shop.project(mode=mode)
    assert project.plan("orders").rows == 250
    result = ok(project.run("orders"))
    assert (result.rows.inserted, result.slices) == (250, 3)
    assert str(result.guarantee) == "none"
    assert shop.target()[249] == (250, "it's 250", "62.50", "2026-01-01 10:04:10", 1767254400)
    assert ok(project.run("orders")).nothing_new
    shop.fill(251, 260)
    assert ok(project.run("orders")).rows.inserted == 10
    assert len(shop.target()) == 260


def test_the_command_line_brings_the_driver(shop: Shop) -> None:
    """In a process of its own, which fetches the jar and has Spark look."""
    shop.fill(1, 3)
    shop.project()
    planned = run_cli("plan", "--json", cwd=shop.root)
    assert json.loads(planned.stdout)["pipelines"][0]["rows"] == 3
    run_cli("run", "orders", cwd=shop.root)
    assert [row[0] for row in shop.target()] == [1, 2, 3]


def test_an_update_at_the_mark_is_found(shop: Shop) -> None:
    shop.fill(1, 3)
    project = shop.project()
    ok(project.run("orders"))
    shop.execute("UPDATE orders SET val = 'again' WHERE id = 3")
    result = ok(project.run("orders"))
    assert (result.rows.updated, result.rows.inserted) == (1, 0)


def test_a_query_with_two_columns_in_its_cursor(shop: Shop) -> None:
    shop.fill(1, 20)
    shop.execute("UPDATE orders SET updated_at = timestamp '2026-01-01 10:00:00'")
    project = shop.project('query: "select * from orders where id > 5"', batch_rows=4)
    text = (shop.root / "floodmark.yml").read_text().replace("column: UPDATED_AT", "columns: [UPDATED_AT, ID]")
    (shop.root / "floodmark.yml").write_text(text)
    project = load(shop.root / "floodmark.yml", spark=shop.spark)
    result = ok(project.run("orders"))
    assert result.rows.inserted == 15
    assert result.slices >= 4
    assert ok(project.run("orders")).nothing_new


def test_a_wrong_table_or_column_is_named_without_a_trace(shop: Shop) -> None:
    result = shop.project("table: PUBLIC.ORDRES").run("orders")
    assert isinstance(result.failure, SourceError)
    assert "ORDRES" in result.errors[0]
    assert "not found" in result.errors[0]
    assert "\n" not in result.errors[0]
    assert "SQL statement" not in result.errors[0]
    assert "as the database holds them" in str(result.failure.hint)
    assert f"at jdbc:h2:file:{shop.root}/shop" in redact(result.errors[0], shop.project().spec.secrets)
    assert "jdbc:h2" not in result.errors[0].replace(f"jdbc:h2:file:{shop.root}/shop", "")
    project = shop.project('query: "select id from orders"')
    with pytest.raises(ConfigError, match='column "UPDATED_AT" is not in the query'):
        project.plan("orders")


def test_a_wrong_password_and_a_number_that_overflows_are_told_plainly(shop: Shop) -> None:
    shop.fill(1, 3)
    shop.project()
    path = shop.root / "floodmark.yml"
    path.write_text(path.read_text().replace("user: sa", "user: sa, password: wrong"))
    failure = load(path, spark=shop.spark).run("orders").failure
    assert isinstance(failure, SourceError)
    assert failure.message.endswith("Wrong user name or password [28000-240]")
    assert failure.hint == "check user and password"
    shop.project()
    path.write_text(
        path.read_text() + "    transform: {sql: 'select *, cast(ID * 2000000000 AS int) AS big from source'}\n"
    )
    said = load(path, spark=shop.spark).run("orders").errors[0]
    assert 'cannot be cast to "INT" due to an overflow' in said
    assert "Exception" not in said
