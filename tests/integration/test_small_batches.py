"""A small batch is held while it is merged: what that changes in the table's files, and what it must not change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from tests.lab import Lab, ok

from floodmark.targets import small_batch
from floodmark.targets.small_batch import hold

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = "SELECT id, cast(id AS string) AS name, array(id) AS more FROM VALUES (3), (900), (-5) AS t(id)"


def last_commit(lab: Lab) -> dict[str, Any]:
    return dict(DeltaTable(lab.table).history(1)[0])


def test_a_merge_looks_at_the_range_of_its_keys_and_leaves_one_file(sqlite_lab: Lab) -> None:
    sqlite_lab.insert(*((i, f"v{i}", f"2026-01-01 10:{i:02}:00") for i in range(1, 41)))
    ok(sqlite_lab.project(batch_rows=10).run_until_complete("orders"))
    sqlite_lab.execute("UPDATE orders SET val = 'other', updated_at = '2026-01-02 10:00:00' WHERE id IN (31, 33, 36)")
    ok(sqlite_lab.project(batch_rows=10).run("orders"))
    commit = last_commit(sqlite_lab)
    assert ">= 31" in commit["operationParameters"]["predicate"]
    assert "<= 40" in commit["operationParameters"]["predicate"]  # the row at the mark is read again
    assert int(commit["operationMetrics"]["numTargetFilesAdded"]) == 1
    sqlite_lab.assert_equal()


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
    with small_batch.small_merge(session):
        assert session.conf.get("spark.databricks.delta.merge.materializeSource") == "none"
        assert session.conf.get(chosen) == "false"
    assert session.conf.get("spark.databricks.delta.merge.materializeSource") == "auto"
    assert session.conf.get(chosen) == "false"
