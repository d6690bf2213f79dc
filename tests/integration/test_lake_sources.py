"""Tables of a lake as sources: what changed in them, and what they were."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from tests.lab import Lab, ok
from tests.lake import AT, LakeShop
from tests.services import run_cli

from floodmark.errors import ConfigError, Refused
from floodmark.model.position import Position
from floodmark.sources.lake.cuts import EXACT, Cuts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=["delta to sqlite", "iceberg to delta"])
def shop(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> LakeShop:
    lake, _, copies = request.param.split()
    shop = LakeShop(tmp_path, spark, lake, copies)
    shop.create()
    return shop


@pytest.fixture
def delta(tmp_path: Path, spark: SparkSession) -> LakeShop:
    return LakeShop(tmp_path, spark)


@pytest.fixture
def iceberg(tmp_path: Path, spark: SparkSession) -> LakeShop:
    return LakeShop(tmp_path, spark, "iceberg")


class TestChanges:
    def test_what_changed_is_moved_in_slices_and_then_nothing(self, shop: LakeShop) -> None:
        mode = "append" if shop.copies == "sqlite" else "upsert"
        shop.fill(250)
        project = shop.project(mode, batch_rows=100)
        assert project.plan("orders").rows == 250
        result = ok(project.run("orders"))
        assert (result.rows.inserted, result.slices) == (250, 3)
        shop.assert_equal()
        assert ok(project.run("orders")).nothing_new
        shop.fill(10, start=251)
        assert ok(project.run("orders")).rows.inserted == 10
        shop.assert_equal()

    @pytest.mark.parametrize(("words", "mode"), [("run orders", "upsert"), ("plan orders", "append")])
    def test_a_process_of_its_own_has_no_spark_yet(self, delta: LakeShop, words: str, mode: str) -> None:
        """By timestamp, and by sequence: each look is the first to ask for Spark."""
        delta.create()
        delta.fill(3)
        delta.project(mode).close()
        said = run_cli(*words.split(), cwd=delta.root).stdout
        assert ("3 inserted" if mode == "upsert" else "first load → 4 3 1") in " ".join(said.split())

    def test_an_update_at_the_mark_is_found(self, shop: LakeShop) -> None:
        shop.fill(3)
        project = shop.project()
        ok(project.run("orders"))
        shop.execute("UPDATE orders SET val = 'again' WHERE id = 3")
        result = ok(project.run("orders"))
        assert (result.rows.updated, result.rows.inserted) == (1, 0)
        shop.assert_equal()

    def test_the_whole_table_each_time(self, delta: LakeShop) -> None:
        delta.create()
        delta.fill(5)
        project = delta.project("replace", change="by: none")
        ok(project.run("orders"))
        delta.execute("DELETE FROM orders WHERE id > 3")
        ok(project.run("orders"))
        delta.assert_equal()

    def test_who_else_writes_is_not_known_so_young_rows_are_not_final(self, delta: LakeShop) -> None:
        delta.create()
        delta.fill(3)
        delta.execute("INSERT INTO orders SELECT 9, 'young', current_timestamp()")
        project = delta.project("append", change="by: timestamp, column: updated_at")
        plan = project.plan("orders")
        assert str(plan.guarantee) == "delayed 5m"
        assert "does not show who is at work" in plan.guarantee.reason
        assert (plan.rows, plan.rows_waiting) == (3, 1)

    def test_a_slice_reads_one_version(self, delta: LakeShop) -> None:
        """Rows that are committed while it is read are for the next."""
        delta.create()
        delta.fill(3)
        source = delta.project()._preflight("orders").source
        cursor = delta.project()._preflight("orders").describe()[1]
        assert cursor is not None
        with source.snapshot() as snapshot:
            from floodmark.ports import ReadRequest

            rows = source.read(delta.spark, ReadRequest(cursor, None, None, None), snapshot)
            delta.execute("DELETE FROM orders WHERE id = 1")
            assert rows.count() == 3

    def test_ties_are_never_cut_apart(self, delta: LakeShop) -> None:
        """In groups of five, the last of which lies above the mark and goes with the one before if it may."""
        delta.create()
        delta.execute(
            f"INSERT INTO orders SELECT id, 'v', timestamp'{AT}Z' + make_interval(0,0,0,0,0, id DIV 5) FROM range(20)"
        )
        project = delta.project(batch_rows=3)
        result = ok(project.run("orders"))
        assert (result.rows.inserted, result.slices) == (20, 4)
        delta.assert_equal()
        assert ok(project.run("orders")).nothing_new

    def test_a_composite_cursor_with_text_cuts_inside_a_tie(self, delta: LakeShop) -> None:
        delta.create()
        delta.execute(f"INSERT INTO orders SELECT id, concat('it''s \\\\', id), timestamp'{AT}Z' FROM range(20)")
        project = delta.project(batch_rows=4, change="by: timestamp, columns: [updated_at, val], delay: 0s")
        result = ok(project.run("orders"))
        assert result.rows.inserted == 20
        assert result.slices >= 5
        delta.assert_equal()
        assert ok(project.run("orders")).nothing_new

    @pytest.mark.parametrize("kind", ["timestamp_ntz", "decimal(20,0)", "string"])
    def test_cursors_of_all_kinds(self, delta: LakeShop, kind: str) -> None:
        delta.create(f"id bigint, val string, at {kind}")
        value = {"timestamp_ntz": "timestamp_ntz'2026-06-01 00:00:00' + make_interval(0,0,0,0,0,0, id)"}.get(
            kind, "10 + id"
        )
        delta.execute(f"INSERT INTO orders SELECT id, 'v', CAST({value} AS {kind}) FROM range(20)")
        by = "timestamp, timezone: Europe/Berlin" if kind == "timestamp_ntz" else "sequence"
        project = delta.project(batch_rows=6, change=f"by: {by}, column: at, delay: 0s")
        assert ok(project.run("orders")).slices == 4
        assert delta.target_rows("id, at") == delta.source_rows("id, at")
        assert ok(project.run("orders")).nothing_new

    def test_rows_without_a_cursor_value_are_counted_and_loaded(self, delta: LakeShop) -> None:
        delta.create("id bigint, val map<string, int>, updated_at timestamp")
        delta.execute(f"INSERT INTO orders VALUES (1, map('a', 1), timestamp'{AT}'), (2, map('b', 2), NULL)")
        refused = delta.project().run("orders").failure
        assert refused is not None
        assert "1 row" in str(refused)
        project = delta.project(change="by: timestamp, column: updated_at, delay: 0s, nulls: include")
        ok(project.run("orders"))
        assert [
            row[0] for row in delta.spark.sql(f"SELECT id FROM delta.`{delta.root}/copies/orders` ORDER BY 1").collect()
        ] == [1, 2]
        assert ok(project.run("orders")).nothing_new


class TestTables:
    def test_partitions_odd_names_column_mapping_and_deletion_vectors(
        self, tmp_path: Path, spark: SparkSession
    ) -> None:
        shop = LakeShop(tmp_path, spark, table="bronze/my orders, it's `odd`")
        properties = "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'"
        shop.create(
            "id bigint, `a b,c` string, `p=q` string, updated_at timestamp",
            f"PARTITIONED BY (`p=q`) TBLPROPERTIES ({properties})",
        )
        shop.execute(f"INSERT INTO orders SELECT id, 'x', concat('a%20b/', id % 2), timestamp'{AT}' FROM range(10)")
        shop.execute("DELETE FROM orders WHERE id = 3")
        project = shop.project(source='table: "bronze/my orders, it\'s `odd`"')
        assert ok(project.run("orders")).rows.inserted == 9
        assert shop.target_rows("id, `a b,c`, `p=q`") == shop.source_rows("id, `a b,c`, `p=q`")

    def test_a_wrong_table_or_column_is_named(self, delta: LakeShop) -> None:
        delta.create()
        with pytest.raises(ConfigError, match="there is no table ordres in") as wrong:
            delta.project(source="table: ordres").plan("orders")
        assert str(wrong.value.hint) == "did you mean orders? Tables there: orders"
        with pytest.raises(ConfigError, match='column "upd" is not in orders'):
            delta.project(change="by: timestamp, column: upd").plan("orders")
        delta.execute("ALTER TABLE orders ADD COLUMN n int")
        with pytest.raises(ConfigError, match="is int, not a timestamp") as other:
            delta.project(change="by: timestamp, column: n").plan("orders")
        assert "by: sequence" in str(other.value.hint)

    def test_an_iceberg_table_without_a_snapshot_and_one_that_is_not_there(self, iceberg: LakeShop) -> None:
        iceberg.create("id bigint, `a b` decimal(10, 0), updated_at timestamp", "PARTITIONED BY (bucket(2, id))")
        with pytest.raises(ConfigError, match="there is no table ordres in") as wrong:
            iceberg.project(source="table: ordres").plan("orders")
        assert str(wrong.value.hint) == "did you mean default.orders? Tables there: default.orders"
        project = iceberg.project()
        assert project.plan("orders").rows == 0
        iceberg.execute(f"INSERT INTO orders VALUES (1, 2, timestamp'{AT}')")
        iceberg.execute("ALTER TABLE orders ADD COLUMN later int")
        assert ok(project.run("orders")).rows.inserted == 1
        iceberg.execute(f"INSERT INTO orders VALUES (2, 3, timestamp'{AT}', 4)")
        assert ok(project.run("orders")).rows.inserted == 1
        assert iceberg.target_rows("id, `a b`, later") == [(1, 2, None), (2, 3, 4)]

    def test_a_query_is_refused(self, delta: LakeShop) -> None:
        with pytest.raises(ConfigError, match="a query can't be read from a lake"):
            delta.project(source="query: select 1").plan("orders")


class TestTimeTravel:
    def test_rows_that_were_deleted_come_back(self, shop: LakeShop) -> None:
        shop.fill(20)
        project = shop.project(batch_rows=4)
        mark = ok(project.run("orders")).mark
        before, everything = shop.version(), shop.source_rows()
        shop.execute("DELETE FROM orders WHERE id <= 10")
        shop.change_target("DELETE FROM orders WHERE id <= 10")
        assert ok(project.backfill("orders")).rows.inserted == 0
        plan = project.plan_backfill("orders", source_version=before)
        assert (plan.rows, plan.slices) == (19, 5)
        result = ok(project.backfill("orders", source_version=before))
        assert (result.rows.inserted, result.mark) == (10, mark)
        assert f"reads the source as it was: version {before}" in result.notices
        assert shop.target_rows() == everything
        assert ok(project.run("orders")).nothing_new

    def test_in_upsert_a_newer_row_stays_and_one_that_is_as_old_is_mended(self, shop: LakeShop) -> None:
        shop.fill(5)
        project = shop.project()
        ok(project.run("orders"))
        before = shop.version()
        shop.execute(f"UPDATE orders SET val = 'newer', updated_at = timestamp'{AT}Z' + interval 1 hour WHERE id = 1")
        shop.execute("UPDATE orders SET val = 'destroyed' WHERE id = 2")
        ok(project.run("orders"))
        ok(project.backfill("orders"))
        assert shop.target_rows()[:2] == [(1, "newer"), (2, "destroyed")]
        ok(project.backfill("orders", source_version=before))
        assert shop.target_rows()[:2] == [(1, "newer"), (2, "v2")]

    def test_in_append_the_range_is_what_it_was(self, shop: LakeShop) -> None:
        shop.fill(20)
        project = shop.project("append")
        ok(project.run("orders"))
        before, everything = shop.versions()[0], shop.source_rows()
        shop.execute("UPDATE orders SET val = 'destroyed' WHERE id > 5")
        ok(project.backfill("orders"))
        assert (6, "destroyed") in shop.target_rows()
        ok(project.backfill("orders", "1", "11", source_version=before[0]))
        assert shop.target_rows()[:10] == everything[:10]
        assert (11, "destroyed") in shop.target_rows()
        ok(project.backfill("orders", source_timestamp=before[1]))
        assert shop.target_rows() == everything

    def test_the_columns_are_those_of_then(self, delta: LakeShop) -> None:
        delta.create()
        delta.fill(3)
        project = delta.project()
        ok(project.run("orders"))
        before = delta.version()
        delta.execute("ALTER TABLE orders ADD COLUMN more int")
        delta.execute("UPDATE orders SET more = 1")
        ok(project.backfill("orders"))
        delta.change_target("DELETE FROM orders WHERE id = 1")
        ok(project.backfill("orders", source_version=before))
        assert delta.target_rows("id, more") == [(1, None), (2, 1), (3, None)]

    def test_a_snapshot_that_has_expired_is_refused_with_those_that_are_left(self, iceberg: LakeShop) -> None:
        iceberg.create()
        iceberg.fill(3)
        before = iceberg.version()
        project = iceberg.project()
        ok(project.run("orders"))
        iceberg.fill(3, start=4)
        name = iceberg.name.replace("`", "")
        iceberg.spark.sql(f"CALL {name.partition('.')[0]}.system.expire_snapshots('{name}', timestamp'2999-01-01', 1)")
        failure = project.backfill("orders", source_version=before).failure
        assert isinstance(failure, ConfigError)
        assert failure.message == f"there is no version {before} of orders"
        assert str(failure.hint).startswith(f"versions there: {iceberg.version()} (")

    def test_a_version_that_there_is_not_is_refused_with_those_that_are(self, delta: LakeShop) -> None:
        delta.create()
        delta.fill(3)
        project = delta.project()
        ok(project.run("orders"))
        failure = project.backfill("orders", source_version=99).failure
        assert isinstance(failure, ConfigError)
        assert failure.message == "there is no version 99 of orders"
        assert f"{delta.version()} ({delta.versions()[0][1][:19]} UTC)" in str(failure.hint)
        early = project.backfill("orders", source_timestamp="2001-01-01").failure
        assert isinstance(early, ConfigError)
        assert early.message == "no version of orders is as old as 2001-01-01 00:00:00 UTC"

    def test_what_is_no_time_and_two_answers_are_refused(self, delta: LakeShop) -> None:
        delta.create()
        project = delta.project()
        assert "'soon' is not a time" in project.backfill("orders", source_timestamp="soon").errors[0]
        both = project.backfill("orders", source_timestamp="2026-01-01", source_version=1)
        assert "both given" in both.errors[0]

    def test_a_version_whose_files_were_vacuumed_is_refused_with_those_that_are_left(self, delta: LakeShop) -> None:
        delta.create(more="TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')")
        delta.fill(10)
        project = delta.project()
        ok(project.run("orders"))
        before = delta.version()
        delta.execute("UPDATE orders SET val = 'destroyed'")
        rows = delta.target_rows()
        spark = delta.spark.newSession()
        spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        spark.sql(f"VACUUM {delta.name} RETAIN 0 HOURS")
        failure = project.backfill("orders", source_version=before).failure
        assert isinstance(failure, ConfigError)
        assert failure.message == (f"version {before} of orders can't be read any more: some of its files were removed")
        assert f"versions there: {before + 1} (" in str(failure.hint)
        assert delta.target_rows() == rows
        ok(delta.project().backfill("orders", source_version=before + 1))

    def test_behind_a_log_that_was_cleaned_up_a_version_is_refused(self, delta: LakeShop) -> None:
        delta.create()
        for start in range(4):
            delta.fill(1, start=start)
        project = delta.project()
        ok(project.run("orders"))
        path = delta.root / "lake" / "orders"
        DeltaTable(str(path), version=3).create_checkpoint()
        (path / "_delta_log" / f"{0:020}.json").unlink()
        failure = project.backfill("orders", source_version=2).failure
        assert isinstance(failure, ConfigError)
        assert failure.message == "there is no version 2 of orders any more"
        assert "[3, 4]" in str(failure.hint)
        ok(project.backfill("orders", source_version=3))

    def test_a_database_cant(self, sqlite_lab: Lab) -> None:
        sqlite_lab.fill(3)
        project = sqlite_lab.project()
        ok(project.run("orders"))
        failure = project.backfill("orders", source_version=1).failure
        assert isinstance(failure, ConfigError)
        assert failure.message == "this source keeps no older versions of its table"
        assert failure.hint == "Delta and Iceberg tables do"

    def test_before_the_first_load_it_is_refused_as_ever(self, delta: LakeShop) -> None:
        delta.create()
        delta.fill(1)
        assert isinstance(delta.project().backfill("orders", source_version=1).failure, Refused)

    def test_the_command_line(self, delta: LakeShop) -> None:
        delta.create()
        delta.fill(3)
        ok(delta.project().run("orders"))
        before = delta.version()
        delta.execute("DELETE FROM orders WHERE id = 1")
        delta.change_target("DELETE FROM orders WHERE id = 1")
        run_cli("backfill", "orders", "--source-version", str(before), cwd=delta.root)
        assert [row[0] for row in delta.target_rows()] == [1, 2, 3]


class TestCuts:
    def cuts(self, values: list[int], rows: int, share: float = 1.0) -> list[Any]:
        """Each as it is asked for, with the range counted once."""
        asked: list[float] = []

        def sample(wanted: float) -> list[tuple[int]]:
            asked.append(wanted)
            step = round(1 / share)
            return [(value,) for value in values[::step]]

        cuts, after, found = Cuts(), None, []
        while (at := cuts.next(after, Position.before(10**9), rows, lambda: len(values), sample)) is not None:
            found.append(at.values[0])
            after = at
        assert len(asked) <= 1
        return found

    def test_small_ranges_are_cut_exactly_and_ties_kept(self) -> None:
        assert self.cuts(list(range(10)), 4) == [4, 8]
        assert self.cuts(list(range(8)), 4) == [4]
        assert self.cuts(list(range(4)), 4) == []
        assert self.cuts([1, 1, 1, 1, 2, 3], 2) == [2]
        assert self.cuts([1, 2, 2, 2, 2, 3], 2) == [2, 3]
        assert self.cuts([7] * 9, 2) == []

    def test_large_ranges_are_cut_from_a_sample(self) -> None:
        found = self.cuts(list(range(100 * EXACT)), 10 * EXACT, share=0.01)
        assert len(found) == 9
        assert all(abs(cut - (i + 1) * 10 * EXACT) < EXACT for i, cut in enumerate(found))
