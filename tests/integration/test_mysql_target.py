"""A MariaDB table as the target: text on the way, types at the end, and nothing bent to fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.lab import ok
from tests.warehouse import WarehouseLab

from floodmark.errors import TargetError
from floodmark.opening import load
from floodmark.targets.database.staging import Told, stage
from floodmark.targets.mysql import target as mysql_target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lab(tmp_path: Path, my_db: str, spark: SparkSession) -> WarehouseLab:
    return WarehouseLab(tmp_path / "project", "mariadb", my_db, spark, warehouse=my_db)


@pytest.mark.parametrize("mode", ["append", "upsert"])
@pytest.mark.parametrize("local", ["ON", "OFF"])
def test_load_after_load_and_the_state_rebuilt_from_the_table(lab: WarehouseLab, mode: str, local: str) -> None:
    lab.ask(f"SET GLOBAL local_infile = {local}")
    try:
        lab.series(30, "2026-01-01 10:00:00", "1 second")
        project = lab.project(mode=mode, batch_rows=10)
        assert ok(project.run_until_complete("orders")).rows.inserted == 30
        lab.fill(5, at="2026-01-02 10:00:00", start=31)
        lab.insert((36, "", "2026-01-02 10:00:00"), (37, "a 'b' \\ \"c\",\n", "2026-01-02 10:00:00"))
        lab.execute("INSERT INTO orders VALUES (38, NULL, '2026-01-02 10:00:00')")
        assert ok(project.run("orders")).rows.inserted == 8
        assert ok(project.run("orders")).nothing_new
        assert sorted(lab.ask("SELECT id, val FROM copies")) == sorted(lab.ask("SELECT id, val FROM orders"))
        project.store.delete("orders")
        assert "the state was rebuilt from the target" in ok(project.run("orders")).notices
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


def test_what_an_attempt_left_that_spark_gave_up_is_not_promoted(
    lab: WarehouseLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(batch: Any, put: Any) -> Told:
        told = stage(batch, put)
        (name,) = lab.leftovers()
        lab.ask(f"INSERT INTO {name} SELECT c0, c1, c2, -1 FROM {name}")
        return told

    lab.fill(5)
    monkeypatch.setattr(mysql_target, "stage", twice)
    assert ok(lab.project().run("orders")).rows.inserted == 5
    lab.assert_equal()


def test_keys_that_differ_by_case_alone_are_two_keys(lab: WarehouseLab) -> None:
    lab.execute("CREATE TABLE names (id varchar(20) COLLATE utf8mb4_bin PRIMARY KEY, updated_at datetime(6) NOT NULL)")
    lab.execute("INSERT INTO names VALUES ('a', '2026-01-01'), ('A', '2026-01-01')")
    project = lab.project(source="{connection: shop, table: names}")
    assert ok(project.run("orders")).rows.inserted == 2


def test_a_table_that_was_made_again_is_refused(lab: WarehouseLab) -> None:
    lab.fill(3)
    project = lab.project()
    ok(project.run("orders"))
    lab.ask("DROP TABLE copies")
    lab.ask("CREATE TABLE copies AS SELECT * FROM orders")
    lab.fill(1, at="2026-01-03 10:00:00", start=4)
    assert "was dropped and created again" in project.run("orders").errors[0]


def test_a_database_that_is_not_there_is_told_before_anything_is_read(lab: WarehouseLab) -> None:
    lab.fill(1)
    with pytest.raises(TargetError, match="there is no database elsewhere"):
        load(lab.write(target="{connection: lake, table: elsewhere.t, mode: append}")).plan("orders")
