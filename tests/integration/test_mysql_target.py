"""A MariaDB table as the target: text on the way, types at the end, and nothing bent to fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.lab import ok
from tests.warehouse import WarehouseLab

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lab(tmp_path: Path, my_db: str, spark: SparkSession) -> WarehouseLab:
    return WarehouseLab(tmp_path / "project", "mariadb", my_db, spark, warehouse=my_db)


@pytest.mark.parametrize("local", ["ON", "OFF"])
def test_texts_arrive_as_they_are_with_and_without_files(lab: WarehouseLab, local: str) -> None:
    lab.ask(f"SET GLOBAL local_infile = {local}")
    try:
        lab.insert((1, "", "2026-01-02 10:00:00"), (2, "a 'b' \\ \"c\",\n", "2026-01-02 10:00:00"))
        lab.execute("INSERT INTO orders VALUES (3, NULL, '2026-01-02 10:00:00')")
        assert ok(lab.project().run("orders")).rows.inserted == 3
        assert sorted(lab.ask("SELECT id, val FROM copies")) == sorted(lab.ask("SELECT id, val FROM orders"))
        assert lab.leftovers() == []
    finally:
        lab.ask("SET GLOBAL local_infile = ON")


def test_a_value_that_does_not_fit_is_refused_and_nothing_is_loaded(lab: WarehouseLab) -> None:
    lab.ask("CREATE TABLE copies (id bigint PRIMARY KEY, val varchar(3), updated_at datetime(6))")
    lab.fill(3)
    ok(lab.project().run("orders"))
    lab.insert((4, "too long", "2026-01-03 10:00:00"))
    result = lab.project().run("orders")
    assert "Data too long for column 'val'" in result.errors[0]
    assert len(lab.target_rows()) == 3


def test_keys_that_differ_by_case_alone_are_two_keys(lab: WarehouseLab) -> None:
    lab.execute("CREATE TABLE names (id varchar(20) COLLATE utf8mb4_bin PRIMARY KEY, updated_at datetime(6) NOT NULL)")
    lab.execute("INSERT INTO names VALUES ('a', '2026-01-01'), ('A', '2026-01-01')")
    project = lab.project(source="{connection: shop, table: names}")
    assert ok(project.run("orders")).rows.inserted == 2
