"""Table care at the end of a run: when it is due, what it leaves alone, and that no head is lost by it."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.lab import Lab, ok

from floodmark.care.due import MANY
from floodmark.model.care import Care
from floodmark.model.ledger import Intent, PipelineState
from floodmark.model.outcome import Load
from floodmark.project import Project
from floodmark.targets.delta.care import COMPACTED
from floodmark.targets.delta.target import DeltaTarget
from floodmark.testing.faults import FaultPlan

FIRST = datetime(2026, 1, 1, 10)


def target(maintenance: str, *, mode: str = "append", more: str = "") -> str:
    keys = ", keys: [id]" if mode == "upsert" else ""
    return f"{{connection: lake, table: orders, mode: {mode}{keys}{more}, maintenance: {{{maintenance}}}}}"


def cared(lab: Lab, maintenance: str, *, mode: str = "append", faults: Any = None, more: str = "") -> Project:
    return lab.project(faults, mode=mode, target=target(maintenance, mode=mode, more=more))


def load_one(lab: Lab, project: Project, number: int) -> Any:
    lab.fill(1, f"{FIRST + timedelta(seconds=number):%Y-%m-%d %H:%M:%S}", start=number)
    return ok(project.run("orders"))


def scatter(lab: Lab, first: int = 1000, files: int = MANY + 1) -> None:
    """Somebody else writes as many small files, with rows of the source's own."""
    assert lab.spark is not None
    lab.fill(files, "2026-01-01 09:00:00", start=first)
    rows = lab.spark.range(first, first + files, numPartitions=files).selectExpr(
        "id", "'v' || id AS val", "timestamp'2026-01-01 09:00:00Z' AS updated_at"
    )
    rows.write.format("delta").mode("append").save(lab.table)


def operations(lab: Lab) -> list[str]:
    return [entry["operation"] for entry in DeltaTable(lab.table).history()]


def data_files(lab: Lab) -> set[str]:
    return {path.name for path in Path(lab.table).glob("*.parquet")}


def stored(project: Project) -> PipelineState:
    state = project.store.get("orders")
    assert state is not None
    return state


def forget_history(lab: Lab) -> None:
    """What Delta's cleanup leaves once all commits are older than it keeps them: a checkpoint, and the commit that it
    was made of."""
    assert lab.spark is not None
    lab.spark.sql(f"ALTER TABLE delta.`{lab.table}` SET TBLPROPERTIES ('somebody' = 'else')")
    table = DeltaTable(lab.table)
    table.create_checkpoint()
    for path in Path(lab.table, "_delta_log").iterdir():
        number = re.match(r"\.?(\d{20})\.", path.name)
        if number and int(number[1]) < table.version():
            path.unlink()
    assert len(DeltaTable(lab.table).history()) == 1


class TestWhenDue:
    def test_a_young_table_is_left_alone(self, sqlite_lab: Lab) -> None:
        project = cared(sqlite_lab, "compact: 1h")
        for number in (1, 2, 3):
            assert load_one(sqlite_lab, project, number).notices == ()
        assert "care" not in ok(project.run("orders")).seconds
        assert set(operations(sqlite_lab)) == {"CREATE TABLE", "WRITE"}

    @pytest.mark.parametrize("mode", ["append", "upsert"])
    def test_many_small_files_become_one(self, sqlite_lab: Lab, mode: str) -> None:
        project = cared(sqlite_lab, "compact: 1h", mode=mode)
        load_one(sqlite_lab, project, 1)
        scatter(sqlite_lab)
        if mode == "append":
            project = cared(sqlite_lab, "compact: 1h", mode=mode)
            project.set_mark("orders", str(1000 + MANY + 1))
        result = load_one(sqlite_lab, project, 2000)
        assert any(re.fullmatch(r"compacted: \d+ files became 1", notice) for notice in result.notices), result.notices
        assert "care" in result.seconds
        assert len(DeltaTable(sqlite_lab.table).file_uris()) == 1
        sqlite_lab.assert_equal()
        scatter(sqlite_lab, 3000)
        if mode == "append":
            project.set_mark("orders", str(3000 + MANY + 1))
        assert load_one(sqlite_lab, project, 4000).notices == ()  # an hour has not passed
        sqlite_lab.assert_equal()

    def test_a_first_load_compacts_what_it_left(self, sqlite_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("floodmark.care.caretaker.MANY", 3)
        for number in range(1, 6):
            sqlite_lab.fill(1, f"{FIRST + timedelta(seconds=number):%Y-%m-%d %H:%M:%S}", start=number)
        project = sqlite_lab.project(mode="upsert", batch_rows=1, target=target("compact: 1h", mode="upsert"))
        result = ok(project.run("orders"))
        assert result.slices == 4, "the last one goes from the mark to the highest row"
        assert re.fullmatch(r"compacted: \d+ files became 1", result.notices[-1])
        sqlite_lab.assert_equal()
        assert load_one(sqlite_lab, project, 100).notices == ()

    def test_off_is_off(self, sqlite_lab: Lab) -> None:
        project = cared(sqlite_lab, "compact: off, vacuum: off", mode="upsert")
        load_one(sqlite_lab, project, 1)
        scatter(sqlite_lab)
        load_one(sqlite_lab, project, 2)
        assert "OPTIMIZE" not in operations(sqlite_lab)

    def test_a_partition_with_one_file_is_as_good_as_it_gets(self, sqlite_lab: Lab) -> None:
        project = cared(sqlite_lab, "compact: 0s", more=", partition_by: [val]")
        sqlite_lab.fill(MANY + 5)
        ok(project.run("orders"))
        assert load_one(sqlite_lab, project, 100).notices == ()
        assert "OPTIMIZE" not in operations(sqlite_lab)

    def test_files_are_written_anew_once_a_fifth_of_their_rows_is_gone(
        self, sqlite_lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(COMPACTED, "spark.databricks.delta.optimize.minFileSize", "1")
        project = cared(sqlite_lab, "compact: off", mode="upsert")
        for start, at in ((1, "2026-01-01 10:00:00"), (101, "2026-01-01 11:00:00")):
            sqlite_lab.fill(100, at, start=start)
            ok(project.run("orders"))
        first = data_files(sqlite_lab)
        assert len(first) == 2
        assert sqlite_lab.spark is not None
        delta = project._target(project.spec.pipelines["orders"])
        assert isinstance(delta, DeltaTarget)
        for at, changed, wanted in (("2026-01-02 10:00:00", 15, True), ("2026-01-03 10:00:00", 25, False)):
            sqlite_lab.execute(f"UPDATE orders SET val = val || '*', updated_at = '{at}' WHERE id % 100 < {changed}")
            ok(project.run("orders"))
            delta.care(sqlite_lab.spark, Care("compact", stored(project), FIRST))
            names = {Path(uri).name for uri in DeltaTable(sqlite_lab.table).file_uris()}
            assert (first <= names) is wanted
        sqlite_lab.assert_equal()


class TestVacuum:
    def test_only_what_is_older_than_kept_goes(self, sqlite_lab: Lab) -> None:
        project = cared(sqlite_lab, "compact: off, vacuum: 0s", mode="upsert")
        load_one(sqlite_lab, project, 1)
        sqlite_lab.execute("UPDATE orders SET val = 'w', updated_at = '2026-02-02 10:00:00'")
        ok(project.run("orders"))
        before = data_files(sqlite_lab)
        load_one(sqlite_lab, project, 5_000_000)
        assert "VACUUM END" in operations(sqlite_lab)
        assert before < data_files(sqlite_lab)
        project = cared(sqlite_lab, "compact: off, vacuum: 0s, keep: 0s", mode="upsert")
        sqlite_lab.execute("UPDATE orders SET val = 'x', updated_at = '2026-04-03 10:00:00'")
        result = ok(project.run("orders"))
        assert any(notice.startswith("vacuumed: ") for notice in result.notices)
        held = {Path(uri).name for uri in DeltaTable(sqlite_lab.table).file_uris()}
        assert before & data_files(sqlite_lab) == before & held
        assert not before <= held
        sqlite_lab.assert_equal()


class TestTheHead:
    @pytest.mark.parametrize("mode", ["append", "upsert"])
    def test_it_outlives_the_log(self, sqlite_lab: Lab, mode: str) -> None:
        """Everything that may be thrown away is; the state too. It is rebuilt as it was, and a replay has no effect."""
        project = cared(sqlite_lab, "vacuum: off", mode=mode)
        load_one(sqlite_lab, project, 1)
        log_kept_for(sqlite_lab, 0)
        for number in (2, 3):
            load_one(sqlite_lab, project, number)
        project = cared(sqlite_lab, "vacuum: 0s, keep: 0s", mode=mode)
        load_one(sqlite_lab, project, 4)
        assert "VACUUM END" in operations(sqlite_lab)
        forget_history(sqlite_lab)
        before = stored(project)
        assert project.store.delete("orders")
        result = ok(project.run("orders"))
        assert result.nothing_new
        assert "the state was rebuilt from the target" in result.notices
        after = stored(project)
        same = {"revision": 0, "server": None, "nulls": None, "look": None}
        assert after.but(**same, run_count=before.run_count) == before.but(
            **same, last_run_id=after.last_run_id, last_run_at=after.last_run_at
        )
        replay(sqlite_lab, project, before)
        assert load_one(sqlite_lab, project, 5).rows.inserted == 1
        sqlite_lab.assert_equal()

    def test_a_quiet_run_keeps_it_before_it_is_forgotten(self, sqlite_lab: Lab) -> None:
        project = cared(sqlite_lab, "")
        load_one(sqlite_lab, project, 1)
        log_kept_for(sqlite_lab, 0)
        result = ok(project.run("orders"))
        assert result.nothing_new
        assert "care" in result.seconds
        assert "care" not in ok(project.run("orders")).seconds
        forget_history(sqlite_lab)
        assert project.store.delete("orders")
        assert ok(project.run("orders")).nothing_new

    def test_how_far_rows_go_outlives_the_log(self, sqlite_lab: Lab) -> None:
        """A reset that is half read again: an append that forgot how far rows had been loaded would double them."""
        project = cared(sqlite_lab, "")
        sqlite_lab.fill(30)
        ok(project.run("orders"))
        log_kept_for(sqlite_lab, 0)
        project = sqlite_lab.project(mode="append", batch_rows=10, target=target(""))
        project.set_mark("orders", "1")
        assert ok(project.run("orders", max_slices=1)).rows.inserted == 10
        assert stored(project).reached is not None
        forget_history(sqlite_lab)
        assert project.store.delete("orders")
        ok(project.run_until_complete("orders"))
        sqlite_lab.assert_equal()

    def test_each_pipeline_of_a_table_keeps_its_own(self, sqlite_lab: Lab) -> None:
        orders, others = two_projects(sqlite_lab)
        log_kept_for(sqlite_lab, 0)
        load_one(sqlite_lab, orders, 10)
        before = [orders.status("orders").mark, others.status("others").mark]
        forget_history(sqlite_lab)
        for project, name in ((orders, "orders"), (others, "others")):
            assert project.store.delete(name)
            assert ok(project.run(name)).nothing_new
        assert [orders.status("orders").mark, others.status("others").mark] == before
        assert len(sqlite_lab.target_rows()) == 3

    def test_a_pipeline_that_rests_is_known_beside_a_busy_one(
        self, sqlite_lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("floodmark.targets.delta.log.RECENT", 3)
        orders, others = two_projects(sqlite_lab)
        for number in range(10, 14):
            load_one(sqlite_lab, orders, number)
        assert ok(others.run("others")).nothing_new

    def test_a_restore_takes_back_what_was_kept(self, sqlite_lab: Lab) -> None:
        assert sqlite_lab.spark is not None
        project = cared(sqlite_lab, "")
        load_one(sqlite_lab, project, 1)
        log_kept_for(sqlite_lab, 0)
        load_one(sqlite_lab, project, 2)
        version = DeltaTable(sqlite_lab.table).version()
        load_one(sqlite_lab, project, 3)
        log_kept_for(sqlite_lab, 86400)
        sqlite_lab.spark.sql(f"RESTORE TABLE delta.`{sqlite_lab.table}` TO VERSION AS OF {version}").collect()
        assert project.store.delete("orders")
        assert ok(project.run("orders")).rows.inserted == 1
        sqlite_lab.assert_equal()

    def test_a_copy_of_the_table_has_no_head(self, sqlite_lab: Lab) -> None:
        assert sqlite_lab.spark is not None
        project = cared(sqlite_lab, "")
        load_one(sqlite_lab, project, 1)
        log_kept_for(sqlite_lab, 0)
        load_one(sqlite_lab, project, 2)
        value = DeltaTable(sqlite_lab.table).metadata().configuration["floodmark.head.orders"]
        copy = sqlite_lab.table.replace("orders", "copies")
        rows = sqlite_lab.spark.read.format("delta").load(sqlite_lab.table)
        rows.write.format("delta").save(copy)
        sqlite_lab.spark.sql(f"ALTER TABLE delta.`{copy}` SET TBLPROPERTIES ('floodmark.head.orders' = '{value}')")
        assert json.loads(value)["head"]["ordinal"] == 2
        elsewhere = sqlite_lab.project(mode="append", target=target("").replace("table: orders", "table: copies"))
        assert elsewhere.store.delete("orders")
        result = elsewhere.run("orders")
        assert "holds rows, but no window of this pipeline is known" in result.errors[0]


def two_projects(lab: Lab) -> tuple[Project, Project]:
    """Pipelines `orders` and `others`, from a table each into one."""
    lab.execute("CREATE TABLE others (id INTEGER PRIMARY KEY, val TEXT, updated_at DATETIME NOT NULL)")
    lab.execute("INSERT INTO others VALUES (?, ?, ?)", [(i, "theirs", "2026-01-01 10:00:00") for i in (501, 502)])
    lab.fill(2)
    source = "{connection: shop, table: others}"
    others = lab.project(mode="append", pipeline="others", source=source, target=target(""))
    ok(others.run("others"))
    orders = lab.project(mode="append", target=target(""))
    ok(orders.run("orders", full_refresh=True))  # or it would refuse the other's rows
    return orders, others


def log_kept_for(lab: Lab, seconds: int) -> None:
    assert lab.spark is not None
    lab.spark.sql(
        f"ALTER TABLE delta.`{lab.table}` SET TBLPROPERTIES "
        f"('delta.logRetentionDuration' = 'interval {seconds} seconds', "
        f"'delta.deletedFileRetentionDuration' = 'interval {seconds} seconds')"
    )


def replay(lab: Lab, project: Project, state: PipelineState) -> None:
    """The newest batch once more, and an older ordinal under another name, past everything that checks before."""
    from floodmark.targets.delta.target import DeltaTarget

    assert lab.spark is not None
    assert state.head is not None
    made = project._target(project.spec.pipelines["orders"])
    assert isinstance(made, DeltaTarget)
    newest = made.inspect().landed[0].head
    rows = lab.spark.read.format("delta").load(lab.table)
    before = lab.target_rows()
    for batch, ordinal in ((newest.batch, newest.ordinal), ("another", newest.ordinal), ("another", 1)):
        head = newest.but(batch=batch, ordinal=ordinal)
        intent = Intent(batch=batch, ordinal=ordinal, after=head.after, until=head.until, mark=head.mark)
        landed = made.load(lab.spark, rows, Load(intent, head, "append", (), ()))
        assert (landed is None) == (batch == "another")
        assert lab.target_rows() == before


class TestBesideTheRun:
    def test_what_goes_wrong_is_told_and_done_the_next_time(self, sqlite_lab: Lab) -> None:
        faults = FaultPlan.of("target.care:before=error").registry()
        project = cared(sqlite_lab, "compact: 0s", mode="upsert", faults=faults)
        load_one(sqlite_lab, project, 1)
        scatter(sqlite_lab)
        result = load_one(sqlite_lab, project, 2)
        assert result.notices == ("compaction is left to a later run: injected failure at target.care (before)",)
        assert any(notice.startswith("compacted: ") for notice in load_one(sqlite_lab, project, 3).notices)
        sqlite_lab.assert_equal()

    def test_a_stop_leaves_it_to_a_later_run(self, sqlite_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        project = cared(sqlite_lab, "compact: 0s", mode="upsert")
        load_one(sqlite_lab, project, 1)
        scatter(sqlite_lab)
        from floodmark.targets.delta.target import DeltaTarget

        compact = DeltaTarget.care

        def asked(self: DeltaTarget, spark: Any, wanted: Any) -> Any:
            project.stop()
            project._stop.check()
            return compact(self, spark, wanted)

        monkeypatch.setattr(DeltaTarget, "care", asked)
        result = load_one(sqlite_lab, project, 2)
        assert result.notices == ("compaction is left to a later run: stopped",)
        assert result.success

    def test_a_reader_goes_on_reading_what_it_began(self, sqlite_lab: Lab) -> None:
        assert sqlite_lab.spark is not None
        project = cared(sqlite_lab, "compact: 0s, vacuum: 0s", mode="upsert")
        load_one(sqlite_lab, project, 1)
        scatter(sqlite_lab)
        version = DeltaTable(sqlite_lab.table).version()
        rows = sqlite_lab.spark.read.format("delta").option("versionAsOf", version).load(sqlite_lab.table)
        began = rows.toLocalIterator()
        next(began)
        assert any(notice.startswith("compacted: ") for notice in load_one(sqlite_lab, project, 2).notices)
        assert len(list(began)) == MANY + 1
        assert rows.count() == MANY + 2
