"""A table on a database server as the target: what is staged, what is promoted, and what a reader may see of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.lab import load_after_load, ok
from tests.warehouse import WarehouseLab

from floodmark.errors import TargetError
from floodmark.opening import load
from floodmark.targets.database.heads import Heads
from floodmark.targets.database.staging import Told, stage
from floodmark.targets.mysql import target as mysql_target
from floodmark.targets.postgres import target as postgres_target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATABASES = {"postgres": "pg_db", "mariadb": "my_db"}
MODULES = {"postgres": postgres_target, "mariadb": mysql_target}
STAGED = {"postgres": "id, val, updated_at", "mariadb": "c0, c1, c2"}


@pytest.fixture(params=DATABASES)
def lab(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> WarehouseLab:
    url = request.getfixturevalue(DATABASES[request.param])
    return WarehouseLab(tmp_path / "project", request.param, url, spark, warehouse=url)


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_load_after_load_and_the_state_rebuilt_from_the_table(lab: WarehouseLab, mode: str) -> None:
    load_after_load(lab, mode)
    lab.assert_equal()
    assert lab.leftovers() == []


def test_changed_rows_are_updated_and_counted(lab: WarehouseLab) -> None:
    lab.series(10, "2026-01-01 10:00:00", "1 second")
    project = lab.project()
    ok(project.run("orders"))
    lab.execute("UPDATE orders SET val = 'other', updated_at = '2026-01-02 10:00:00' WHERE id <= 3")
    result = ok(project.run("orders"))
    assert (result.rows.inserted, result.rows.updated, result.rows.deleted) == (0, 3, 0)
    lab.assert_equal()


def test_a_backfill_of_an_append_replaces_its_range(lab: WarehouseLab) -> None:
    lab.series(10, "2026-01-01 10:00:00", "1 second")
    project = lab.project(mode="append")
    ok(project.run("orders"))
    lab.execute("UPDATE orders SET val = 'mended' WHERE id BETWEEN 3 AND 5")
    lab.execute("DELETE FROM orders WHERE id = 4")
    for _ in range(2):
        ok(project.backfill("orders", 3, 6))
        lab.assert_equal()


def test_what_an_attempt_left_that_spark_gave_up_is_not_promoted(
    lab: WarehouseLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(batch: Any, put: Any) -> Told:
        told = stage(batch, put)
        (name,) = lab.leftovers()
        lab.ask(f"INSERT INTO {name} SELECT {STAGED[lab.kind]}, -1 FROM {name}")
        return told

    lab.fill(5)
    monkeypatch.setattr(MODULES[lab.kind], "stage", twice)
    assert ok(lab.project().run("orders")).rows.inserted == 5
    lab.assert_equal()


def test_staged_rows_that_are_lost_are_missed_and_staged_again(
    lab: WarehouseLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash of the server empties an unlogged table."""
    emptied: list[str] = []

    def lost(batch: Any, put: Any) -> Told:
        told = stage(batch, put)
        if not emptied:
            emptied.extend(lab.leftovers())
            lab.ask(f"TRUNCATE {emptied[0]}")
        return told

    lab.fill(5)
    monkeypatch.setattr(MODULES[lab.kind], "stage", lost)
    result = ok(lab.project().run("orders"))
    assert emptied
    assert any("the database has lost the others" in notice for notice in result.notices)
    lab.assert_equal()


def test_what_a_dead_run_left_is_removed_and_others_are_not(lab: WarehouseLab) -> None:
    lab.fill(2)
    project = lab.project()
    ok(project.run("orders"))
    stages = project._target(project.spec.pipelines["orders"])._stages  # type: ignore[attr-defined]
    lab.ask(f"CREATE TABLE {stages}dead (id int)")
    lab.ask("CREATE TABLE floodmark_stage_somebody (id int)")
    lab.fill(1, at="2026-01-03 10:00:00", start=3)
    ok(project.run("orders"))
    assert lab.leftovers() == ["floodmark_stage_somebody"]


def test_a_reader_sees_all_of_a_replaced_table_or_nothing_new(
    lab: WarehouseLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen from another session in the middle of the transaction."""
    declared = {"change": "{by: none}", "target": "{connection: lake, table: copies, mode: replace}"}
    lab.fill(3)
    project = lab.project(**declared)
    ok(project.run("orders"))
    seen: list[int] = []
    count = Heads.count

    def watched(*arguments: Any) -> None:
        seen.append(len(lab.target_rows()))
        count(*arguments)

    monkeypatch.setattr(Heads, "count", watched)
    lab.fill(2, start=4)
    ok(project.run("orders"))
    assert seen == [3]
    lab.assert_equal()


def test_a_table_that_was_emptied_dropped_or_made_again_is_refused(lab: WarehouseLab) -> None:
    lab.fill(3)
    project = lab.project()
    ok(project.run("orders"))
    lab.fill(1, at="2026-01-03 10:00:00", start=4)
    lab.ask("TRUNCATE copies")
    assert "is empty" in project.run("orders").errors[0]
    lab.ask("DROP TABLE copies")
    assert "is gone" in project.run("orders").errors[0]
    lab.ask("CREATE TABLE copies AS SELECT * FROM orders")
    assert "was dropped and created again" in project.run("orders").errors[0]


def test_a_full_refresh_follows_the_columns_and_says_where_it_can_not(lab: WarehouseLab) -> None:
    frozen = "{connection: lake, table: copies, mode: upsert, keys: [id], schema_changes: freeze}"
    lab.fill(3)
    ok(lab.project(target=frozen).run("orders"))
    more = {"target": frozen, "transform": '{sql: "select *, 1 as n from source"}'}
    lab.fill(1, at="2026-01-03 10:00:00", start=4)
    assert "n is new" in lab.project(**more).run("orders").errors[0]
    assert ok(lab.project(**more).run("orders", full_refresh=True)).rows.inserted == 4
    assert lab.ask("SELECT count(n) FROM copies") == [(4,)]
    other = {"target": frozen, "transform": '{sql: "select *, array(1) as n from source"}'}
    result = lab.project(**other).run("orders", full_refresh=True)
    assert "n was int and is" in result.errors[0]
    assert "drop the table copies" in str(getattr(result.failure, "hint", ""))
    lab.ask("DROP TABLE copies")
    ok(lab.project(**other).run("orders", full_refresh=True))
    ((kept,),) = lab.ask("SELECT n FROM copies LIMIT 1")
    assert str(kept) == "[1]"


def test_a_type_that_the_database_lacks_is_refused_by_name(lab: WarehouseLab) -> None:
    lab.fill(1)
    result = lab.project(transform='{sql: "select *, interval 3 days as span from source"}').run("orders")
    assert 'column "span" is interval day' in result.errors[0]


def test_a_server_that_is_not_there(lab: WarehouseLab) -> None:
    scheme = lab.url.partition(":")[0]
    lab.lake = f'{{type: {lab.kind}, url: "{scheme}://a:b3tter-pw@127.0.0.1:1/x"}}'
    with pytest.raises(TargetError, match=r"can't connect to \w+ at 127\.0\.0\.1:1/x") as refused:
        load(lab.write()).plan("orders")
    assert "b3tter" not in str(refused.value)


def test_a_schema_that_is_not_there_is_told_before_anything_is_read(lab: WarehouseLab) -> None:
    lab.fill(1)
    with pytest.raises(TargetError, match=r"there is no (schema|database) elsewhere"):
        load(lab.write(target="{connection: lake, table: elsewhere.t, mode: append}")).plan("orders")
