"""SQL and Python on the batch."""

from __future__ import annotations

from typing import Any

from tests.lab import Lab, ok

from floodmark.errors import ConfigError, TransformError


def rows(lab: Lab) -> list[tuple[Any, ...]]:
    assert lab.spark is not None
    return sorted(tuple(r) for r in lab.spark.read.format("delta").load(lab.table).drop("updated_at").collect())


def test_sql_over_source(sqlite_lab: Lab) -> None:
    sqlite_lab.fill(3)
    project = sqlite_lab.project(
        transform='{sql: "SELECT id, upper(val) AS shout, updated_at FROM source WHERE id > 1"}'
    )
    assert ok(project.run("orders")).rows.inserted == 2
    assert rows(sqlite_lab) == [(2, "V2"), (3, "V3")]


def test_python_function_beside_the_file(sqlite_lab: Lab) -> None:
    sqlite_lab.fill(2)
    (sqlite_lab.root / "shop_rules.py").write_text(
        "from pyspark.sql import functions as F\n\n\ndef shout(batch):\n"
        "    return batch.withColumn('val', F.upper('val'))\n\n\ndef nothing(batch):\n    return None\n"
    )
    assert ok(sqlite_lab.project(transform='{python: "shop_rules:shout"}').run("orders")).success
    assert rows(sqlite_lab) == [(1, "V1"), (2, "V2")]
    result = sqlite_lab.project(transform='{python: "shop_rules:nothing"}').run("orders", full_refresh=True)
    assert isinstance(result.failure, TransformError)
    assert "returned NoneType, not a DataFrame" in result.errors[0]


def test_a_failing_transform_names_its_line_and_loads_nothing(sqlite_lab: Lab) -> None:
    sqlite_lab.fill(1)
    result = sqlite_lab.project(transform='{sql: "SELECT nonsense FROM source"}').run("orders")
    assert isinstance(result.failure, TransformError)
    assert "nonsense" in result.errors[0]
    assert result.failure.declared_at is not None
    assert "nonsense" in result.failure.declared_at.text


def test_a_transform_that_drops_a_key_is_refused_by_name(sqlite_lab: Lab) -> None:
    sqlite_lab.fill(1)
    result = sqlite_lab.project(transform='{sql: "SELECT val, updated_at FROM source"}').run("orders")
    assert isinstance(result.failure, ConfigError)
    assert 'column "id", a key, is not among the columns to load' in result.errors[0]
