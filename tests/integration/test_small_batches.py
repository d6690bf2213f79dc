"""A small batch is held while it is merged: what that changes in the table's files, and what it must not change."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from tests.lab import Lab, ok

from floodmark.spark.tuning import SMALL_MERGE_SETTINGS
from floodmark.targets import small_batch
from floodmark.targets.delta.target import DeltaTarget
from floodmark.targets.small_batch import hold

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = "SELECT id, cast(id AS string) AS name, array(id) AS more FROM VALUES (3), (900), (-5) AS t(id)"


def last_commit(lab: Lab) -> dict[str, Any]:
    return dict(DeltaTable(lab.table).history(1)[0])


def test_a_table_is_prepared_while_the_source_is_read(sqlite_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()

    def prepare(target: DeltaTarget, spark: SparkSession) -> None:
        asked.set()
        raise RuntimeError("a load does without it")

    monkeypatch.setattr(DeltaTarget, "prepare", prepare)
    sqlite_lab.fill(3)
    ok(sqlite_lab.project().run("orders"))
    assert not asked.is_set(), "there was no table yet"
    sqlite_lab.fill(2, at="2026-01-02 11:00:00", start=41)
    ok(sqlite_lab.project().run("orders"))
    assert asked.wait(60)
    sqlite_lab.assert_equal()


def test_rows_are_replaced_by_key_and_leave_one_file(sqlite_lab: Lab) -> None:
    sqlite_lab.insert(*((i, f"v{i}", f"2026-01-01 10:{i:02}:00") for i in range(1, 41)))
    ok(sqlite_lab.project(batch_rows=10).run_until_complete("orders"))
    sqlite_lab.execute("UPDATE orders SET val = 'other', updated_at = '2026-01-02 10:00:00' WHERE id IN (31, 33, 36)")
    sqlite_lab.fill(2, at="2026-01-02 11:00:00", start=41)
    result = ok(sqlite_lab.project(batch_rows=10).run("orders"))
    assert (result.rows.inserted, result.rows.updated, result.rows.deleted) == (2, 3, 0)
    assert result.rows.read == 5, "the row at the mark is as it was"
    commit = last_commit(sqlite_lab)
    asked = commit["operationParameters"]["replaceOnCond"]
    assert ">= 31" in asked
    assert "<= 42" in asked
    new = DeltaTable(sqlite_lab.table).file_uris()
    old = DeltaTable(sqlite_lab.table, version=commit["version"] - 1).file_uris()
    assert len(set(new) - set(old)) == 1, "what is replaced is marked, not written again"
    sqlite_lab.assert_equal()


@pytest.mark.parametrize("layout", ["deletion_vectors: false", "partition_by: [val]", "cluster_by: [id]"])
def test_rows_are_replaced_in_any_layout_and_counted(sqlite_lab: Lab, layout: str) -> None:
    target = f"{{connection: lake, table: orders, mode: upsert, keys: [id], {layout}}}"
    sqlite_lab.insert(*((i, f"v{i % 3}", f"2026-01-01 10:{i:02}:00") for i in range(1, 41)))
    ok(sqlite_lab.project(target=target).run("orders"))
    sqlite_lab.execute("UPDATE orders SET val = 'v9', updated_at = '2026-01-02 10:00:00' WHERE id IN (3, 4, 30)")
    sqlite_lab.fill(2, at="2026-01-02 11:00:00", start=41)
    result = ok(sqlite_lab.project(target=target).run("orders"))
    assert (result.rows.inserted, result.rows.updated, result.rows.deleted) == (2, 3, 0)
    assert last_commit(sqlite_lab)["operation"] == "WRITE"
    sqlite_lab.assert_equal()


def test_a_batch_of_rows_that_are_there_already_writes_no_file(sqlite_lab: Lab) -> None:
    """The mark was set back by hand: all is read again, nothing is new."""
    sqlite_lab.insert(*((i, f"v{i}", f"2026-01-01 10:{i:02}:00") for i in range(1, 11)))
    project = sqlite_lab.project()
    ok(project.run("orders"))
    project.reset("orders", to="2026-01-01 10:03:00")
    before = DeltaTable(sqlite_lab.table).file_uris()
    result = ok(project.run("orders"))
    assert (result.rows.inserted, result.rows.updated) == (0, 0)
    assert DeltaTable(sqlite_lab.table).file_uris() == before
    assert ok(project.run("orders")).nothing_new


@pytest.mark.parametrize("by", ["replace", "merge"])
def test_which_rows_win_is_the_same_however_they_are_written(
    spark: SparkSession, sqlite_lab: Lab, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """Newer, equal and changed, equal and the same, older, new; each beside rows that nobody touches."""
    if by == "merge":
        monkeypatch.setattr("floodmark.targets.delta.load.is_replaceable", lambda *_: False)
    sqlite_lab.insert(*((i, "old", f"2026-01-01 10:00:0{i}") for i in range(1, 8)))
    ok(sqlite_lab.project().run("orders"))
    sqlite_lab.execute("UPDATE orders SET val = 'newer', updated_at = '2026-01-03 10:00:00' WHERE id = 1")
    sqlite_lab.execute("UPDATE orders SET val = 'changed' WHERE id = 2")
    sqlite_lab.execute("UPDATE orders SET val = 'older', updated_at = '2026-01-01 10:00:00.5' WHERE id = 4")
    sqlite_lab.insert((8, "new", "2026-01-03 10:00:00"))
    project = sqlite_lab.project()
    project.reset("orders", to="2026-01-01 10:00:00")
    result = ok(project.run("orders"))
    assert (result.rows.inserted, result.rows.updated) == (1, 2)
    values = {number: value for number, value, _ in sqlite_lab.target_rows()}
    assert values == {1: "newer", 2: "changed", 3: "old", 4: "old", 5: "old", 6: "old", 7: "old", 8: "new"}
    assert last_commit(sqlite_lab)["operation"] == ("WRITE" if by == "replace" else "MERGE")


@pytest.mark.parametrize("why", ["change feed", "a column that is gone", "NULL in the cursor", "a Delta of old"])
def test_where_rows_can_not_be_replaced_they_are_merged(
    sqlite_lab: Lab, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    sqlite_lab.execute("DROP TABLE orders")
    sqlite_lab.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, val TEXT, updated_at DATETIME, more TEXT)")
    at = "'2026-01-01 10:00:00'"
    sqlite_lab.execute(f"INSERT INTO orders VALUES (1, 'a', {at}, 'kept'), (2, 'b', {at}, 'kept')")
    change = {"change": "{by: timestamp, column: updated_at, delay: 0s, nulls: include}"}
    ok(sqlite_lab.project(**change).run("orders"))
    if why == "change feed":
        spark.sql(f"ALTER TABLE delta.`{sqlite_lab.table}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    if why == "a column that is gone":
        sqlite_lab.execute("ALTER TABLE orders DROP COLUMN more")
    if why == "a Delta of old":
        monkeypatch.setattr("floodmark.targets.delta.replace.KNOWN", "spark.databricks.delta.nobody.knows.this")
    later = "NULL" if why == "NULL in the cursor" else "'2026-01-02 10:00:00'"
    sqlite_lab.execute(f"UPDATE orders SET val = 'other', updated_at = {later} WHERE id = 2")
    ok(sqlite_lab.project(**change).run("orders"))
    assert last_commit(sqlite_lab)["operation"] == "MERGE"
    found = spark.read.format("delta").load(sqlite_lab.table).orderBy("id")
    assert [(r.id, r.val, r.more) for r in found.collect()] == [(1, "a", "kept"), (2, "other", "kept")]


@pytest.mark.parametrize("kind", ["decimal(20,3)", "date", "timestamp", "timestamp_ntz", "smallint"])
def test_the_lowest_cursor_value_is_exact_in_each_type(spark: SparkSession, kind: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    values = {"date": ["1899-12-31", "2026-10-25"], "smallint": ["-7", "3"], "decimal(20,3)": ["-0.125", "7"]}
    texts = values.get(kind, ["2026-10-25 00:30:00.000001Z", "2026-10-25 01:30:00Z"])
    if kind == "timestamp_ntz":
        texts = [text.rstrip("Z") for text in texts]
    rows = ", ".join(f"({i}, CAST('{text}' AS {kind}))" for i, text in enumerate(texts))
    frame = session.sql(f"SELECT * FROM VALUES {rows} AS t(id, at)")
    lowest = hold(frame, ["id"], "at").lowest
    assert session.sql(f"SELECT {lowest} = CAST('{texts[0]}' AS {kind})").collect()[0][0]


def test_no_lowest_value_is_known_where_one_is_missing_or_text(spark: SparkSession) -> None:
    frame = spark.sql("SELECT * FROM VALUES (1, 5, 'a'), (2, NULL, 'b') AS t(id, at, name)")
    assert hold(frame, ["id"], "at").lowest is None
    assert hold(frame, ["id"], "name").lowest is None
    assert hold(frame, ["id"]).lowest is None
    assert hold(frame.where("id = 1"), ["id"], "at").lowest is not None


def test_keys_at_the_ends_of_their_type(sqlite_lab: Lab) -> None:
    ends = [-(2**63), -1, 0, 2**63 - 1]
    sqlite_lab.insert(*((key, "old", "2026-01-01 10:00:00") for key in ends))
    ok(sqlite_lab.project().run("orders"))
    sqlite_lab.execute("UPDATE orders SET val = 'new', updated_at = '2026-01-02 10:00:00'")
    assert ok(sqlite_lab.project().run("orders")).rows.updated == len(ends)
    sqlite_lab.assert_equal()


def test_a_batch_too_heavy_to_be_sent_to_every_task(sqlite_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_batch, "BROADCAST_BYTES", 10)
    sqlite_lab.fill(20)
    ok(sqlite_lab.project().run("orders"))
    sqlite_lab.execute("UPDATE orders SET val = 'other', updated_at = '2026-01-02 10:00:00' WHERE id < 5")
    sqlite_lab.fill(3, at="2026-01-02 11:00:00", start=21)
    ok(sqlite_lab.project().run("orders"))
    sqlite_lab.assert_equal()


def test_what_is_seen_of_a_batch(spark: SparkSession) -> None:
    held = hold(spark.sql(KEYS), ["id", "name"])
    assert held.ranges == {"id": (-5, 900)}
    assert sorted(row.id for row in held.batch.collect()) == [-5, 3, 900]


def test_an_empty_batch_has_no_range(spark: SparkSession) -> None:
    assert hold(spark.sql(f"{KEYS} WHERE id = 0"), ["id"]).ranges == {}


def test_settings_are_put_back(spark: SparkSession) -> None:
    session = spark.newSession()
    chosen = "spark.databricks.delta.optimizeWrite.enabled"
    session.conf.set(chosen, "false")
    with small_batch.set_for_held(session, SMALL_MERGE_SETTINGS):
        assert session.conf.get("spark.databricks.delta.merge.materializeSource") == "none"
        assert session.conf.get(chosen) == "false"
    assert session.conf.get("spark.databricks.delta.merge.materializeSource") == "auto"
    assert session.conf.get(chosen) == "false"
