"""A Postgres table as the target: what is staged, what is promoted, and what a reader may see of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from tests.lab import ok
from tests.services import PostgresServer
from tests.warehouse import WarehouseLab

from floodmark.errors import TargetError
from floodmark.opening import load
from floodmark.targets.database.heads import Heads
from floodmark.targets.database.staging import Told, stage
from floodmark.targets.postgres import target as postgres_target
from floodmark.targets.postgres.staging import ATTEMPT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lab(tmp_path: Path, pg_db: str, spark: SparkSession) -> WarehouseLab:
    return WarehouseLab(tmp_path / "project", "postgres", pg_db, spark, warehouse=pg_db)


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_load_after_load_and_the_state_rebuilt_from_the_table(lab: WarehouseLab, mode: str) -> None:
    lab.series(30, "2026-01-01 10:00:00", "1 second")
    project = lab.project(mode=mode, batch_rows=10)
    assert ok(project.run_until_complete("orders")).rows.inserted == 30
    lab.fill(5, at="2026-01-02 10:00:00", start=31)
    assert ok(project.run("orders")).rows.inserted == 5
    assert ok(project.run("orders")).nothing_new
    lab.assert_equal()
    project.store.delete("orders")
    again = ok(project.run("orders"))
    assert "the state was rebuilt from the target" in again.notices
    assert again.rows.loaded == 0
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
    def twice(batch: Any, copy: Any) -> Told:
        staged = stage(batch, copy)
        (name,) = lab.leftovers()
        lab.ask(f'INSERT INTO "{name}" SELECT id, val, updated_at, -1 FROM "{name}"')
        return staged

    lab.fill(5)
    monkeypatch.setattr(postgres_target, "stage", twice)
    assert ok(lab.project().run("orders")).rows.inserted == 5
    lab.assert_equal()


def test_a_staging_table_that_a_crash_has_emptied_is_noticed_and_filled_again(
    lab: WarehouseLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    emptied: list[str] = []

    def lost(batch: Any, copy: Any) -> Told:
        staged = stage(batch, copy)
        if not emptied:
            emptied.extend(lab.leftovers())
            lab.ask(f'TRUNCATE "{emptied[0]}"')
        return staged

    lab.fill(5)
    monkeypatch.setattr(postgres_target, "stage", lost)
    result = ok(lab.project().run("orders"))
    assert emptied
    assert any("the database has lost the others" in notice for notice in result.notices)
    lab.assert_equal()


def test_what_a_dead_run_left_is_removed_and_others_are_not(lab: WarehouseLab) -> None:
    lab.fill(2)
    project = lab.project()
    ok(project.run("orders"))
    stages = project._target(project.spec.pipelines["orders"])._stages  # type: ignore[attr-defined]
    lab.ask(f'CREATE TABLE "{stages}dead" (id int)')
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


def test_a_table_that_was_emptied_or_dropped_is_refused(lab: WarehouseLab) -> None:
    lab.fill(3)
    project = lab.project()
    ok(project.run("orders"))
    lab.fill(1, at="2026-01-03 10:00:00", start=4)
    lab.ask("TRUNCATE copies")
    assert "is empty" in project.run("orders").errors[0]
    lab.ask("DROP TABLE copies")
    assert "is gone" in project.run("orders").errors[0]


def test_a_table_with_types_of_its_own_takes_what_fits(lab: WarehouseLab) -> None:
    lab.ask("CREATE TABLE copies (id numeric PRIMARY KEY, val varchar(3), updated_at timestamptz)")
    lab.fill(3)
    ok(lab.project().run("orders"))
    lab.insert((4, "too long", "2026-01-03 10:00:00"))
    result = lab.project().run("orders")
    told = 'value too long for type character varying(3) (column val, value "too long")'
    assert told in result.errors[0]
    assert len(lab.target_rows()) == 3


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
    assert lab.ask("SELECT n FROM copies LIMIT 1") == [([1],)]


def test_a_type_that_postgres_lacks_is_refused_by_name(lab: WarehouseLab) -> None:
    lab.fill(1)
    result = lab.project(transform='{sql: "select *, interval 3 days as span from source"}').run("orders")
    assert 'column "span" is interval day' in result.errors[0]


def test_who_may_not_write_is_told_before_anything_is_read(lab: WarehouseLab, postgres: PostgresServer) -> None:
    lab.fill(1)
    lab.ask("CREATE ROLE reader LOGIN PASSWORD 'reader-pw'; REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    try:
        lab.lake = f'{{type: postgres, url: "{lab.url.replace("floodmark:s3cret-pw", "reader:reader-pw")}"}}'
        with pytest.raises(TargetError, match="reader may not create tables there") as refused:
            load(lab.write()).plan("orders")
        assert 'GRANT CREATE ON SCHEMA "public" TO "reader"' in str(refused.value.hint)
        with pytest.raises(TargetError, match="there is no schema elsewhere"):
            load(lab.write(target="{connection: lake, table: elsewhere.t, mode: append}")).plan("orders")
    finally:
        lab.ask("DROP ROLE reader")


def test_a_server_that_is_not_there(lab: WarehouseLab) -> None:
    lab.lake = '{type: postgres, url: "postgresql://a:b3tter-pw@127.0.0.1:1/x"}'
    with pytest.raises(TargetError, match=r"can't connect to Postgres at 127\.0\.0\.1:1/x") as refused:
        load(lab.write()).plan("orders")
    assert "b3tter" not in str(refused.value)


def test_the_attempt_is_a_column_of_the_staging_table_alone(lab: WarehouseLab) -> None:
    lab.fill(1)
    ok(lab.project().run("orders"))
    with psycopg.connect(lab.warehouse) as db:
        names = [c.name for c in db.execute("SELECT * FROM copies").description or ()]
    assert names == ["id", "val", "updated_at"]
    assert ATTEMPT not in names
