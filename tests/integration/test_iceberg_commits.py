"""A branch for each load, and main that moves in one step or not at all, whatever others do to the table."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.iceberg import Lake, Paused

from floodmark.errors import TargetError
from floodmark.testing.target_suite import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Lake:
    return Lake(tmp_path, spark)


COMPACT = "CALL {c}.system.rewrite_data_files(table => 'default.orders', options => map('rewrite-all', 'true'))"
EXPIRE = "CALL {c}.system.expire_snapshots(table => 'default.orders', older_than => TIMESTAMP '2100-01-01')"


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_runner_that_was_overtaken_can_not_publish(lake: Lake, mode: str, first: bool) -> None:
    """Into a table that has rows, and into one that nothing has landed in."""
    if not first:
        lake.begin(mode).load([(1, "a", 1)])
    ordinal = 1 if first else 2
    slow, quick = lake.begin(mode, Paused), lake.begin(mode)
    seen: list[Any] = []

    def overtake() -> None:
        seen.extend(slow.rows())
        quick.load([(2, "quick", 2)], ordinal=ordinal, batch="quick")

    Paused.meanwhile = staticmethod(overtake)
    frame = slow.spark.createDataFrame([(2, "slow", 2), (3, "slow", 2)], COLUMNS)
    assert slow.attempt(frame, ordinal=ordinal, batch="slow") is None
    assert quick.rows() == [(1, "a", 1), (2, "quick", 2)][first:]
    assert quick.target.find("slow") is None
    assert seen == ([] if first else [(1, "a", 1)]), "readers see main, and nothing that is on its way"
    assert lake.branches() == ["main"]


def test_a_branch_that_was_dropped_under_its_writer_is_not_published(lake: Lake) -> None:
    """Iceberg would make it again from main, on top of what has landed since."""
    lake.begin("append").load([(1, "a", 1)])
    arrived, go = str(lake.root / "arrived"), str(lake.root / "go")
    os.mkfifo(arrived)
    os.mkfifo(go)

    def wait(batches: Iterable[Any]) -> Iterable[Any]:
        with open(arrived, "w"), open(go):
            pass
        yield from batches

    slow, quick = lake.begin("append"), lake.begin("append")
    frame = slow.spark.createDataFrame([(2, "slow", 2)], COLUMNS).coalesce(1).mapInArrow(wait, COLUMNS)
    outcome: list[Any] = []
    thread = threading.Thread(target=lambda: outcome.append(slow.attempt(frame, ordinal=2, batch="slow")))
    thread.start()
    with open(arrived):
        quick.load([(2, "quick", 2)], ordinal=2, batch="quick")
    with open(go, "w"):
        pass
    thread.join()
    assert outcome == [None]
    assert quick.rows() == [(1, "a", 1), (2, "quick", 2)]
    assert lake.branches() == ["main"]


def test_a_foreign_commit_in_between_is_told_as_something_that_passes(lake: Lake) -> None:
    orders = lake.begin("append", Paused)
    Paused.meanwhile = staticmethod(lambda: None)
    orders.load([(1, "a", 1)])
    Paused.meanwhile = staticmethod(lambda: lake.sql("INSERT INTO {t} VALUES (7, 'theirs', 7)"))
    with pytest.raises(TargetError, match="somebody else changed the table") as caught:
        orders.load([(2, "b", 2)])
    assert caught.value.transient
    Paused.meanwhile = staticmethod(lambda: None)
    orders.load([(2, "b", 2)], ordinal=2)
    assert orders.rows() == [(1, "a", 1), (2, "b", 2), (7, "theirs", 7)]


def test_branches_that_dead_runs_left_are_removed_and_others_stay(lake: Lake) -> None:
    orders = lake.begin("append")
    orders.load([(1, "a", 1)])
    lake.sql("ALTER TABLE {t} CREATE BRANCH floodmark_dead_1")
    lake.sql("ALTER TABLE {t} CREATE BRANCH audit")
    orders.load([(2, "b", 2)])
    assert lake.branches() == ["audit", "main"]


def test_after_a_rollback_the_commits_it_undid_are_gone_and_their_places_taken(lake: Lake) -> None:
    orders = lake.begin("append")
    for number in (1, 2, 3):
        orders.load([(number, "a", number)])
    table = lake.table()
    undone = table.current_snapshot().parent_snapshot_id
    lake.sql("CALL {c}.system.rollback_to_snapshot('default.orders', " + str(undone) + ")")
    state = orders.target.inspect()
    assert [landed.head.batch for landed in state.landed] == ["b2", "b1"]
    assert state.top_ordinal == 3
    assert orders.target.find("b3") is None
    again = orders.spark.createDataFrame([(3, "again", 3)], COLUMNS)
    assert orders.attempt(again, ordinal=3, batch="b3") is None
    assert orders.attempt(again, ordinal=4, batch="b4") is not None
    assert orders.rows() == [(1, "a", 1), (2, "a", 2), (3, "again", 3)]


@pytest.mark.parametrize("mode", ["append", "upsert"])
@pytest.mark.parametrize("often", [1, 2])
def test_heads_outlive_their_snapshots(lake: Lake, mode: str, often: int) -> None:
    orders = lake.begin(mode)
    for number in (1, 2, 3):
        orders.load([(number, "a", number), (9, "b", number)])
    for _ in range(often):
        lake.sql(COMPACT)
    lake.sql(EXPIRE)
    assert not any("floodmark.head" in s.summary.additional_properties for s in lake.table().snapshots())
    state = orders.target.inspect()
    assert [landed.head.batch for landed in state.landed] == ["b3"]
    assert (state.top_ordinal, state.wiped_by, state.has_rows) == (3, None, True)
    assert orders.attempt(orders.spark.createDataFrame([(3, "again", 3)], COLUMNS), ordinal=3) is None
    orders.load([(4, "a", 4)])
    assert len(orders.rows()) == (5 if mode == "upsert" else 7)


def test_a_rollback_and_then_expired_snapshots_leave_no_head_behind(lake: Lake) -> None:
    orders = lake.begin("append")
    orders.load([(1, "a", 1)])
    orders.load([(2, "a", 2)])
    first = lake.table().current_snapshot().parent_snapshot_id
    lake.sql("CALL {c}.system.rollback_to_snapshot('default.orders', " + str(first) + ")")
    lake.sql(
        "CALL {c}.system.expire_snapshots(table => 'default.orders', older_than => TIMESTAMP '2100-01-01 00:00:00')"
    )
    state = orders.target.inspect()
    assert ([landed.head.batch for landed in state.landed], state.top_ordinal) == (["b1"], 2)
    lake.sql(COMPACT)
    lake.sql(EXPIRE)
    state = orders.target.inspect()
    assert (state.landed, state.top_ordinal) == ((), 2), "the head that is kept was rolled back"


def test_a_table_that_somebody_emptied_says_so(lake: Lake) -> None:
    orders = lake.begin("append")
    orders.load([(1, "a", 1), (2, "b", 2)])
    lake.sql("DELETE FROM {t} WHERE id = 1")
    assert orders.target.inspect().wiped_by is None
    lake.sql("DELETE FROM {t}")
    state = orders.target.inspect()
    assert "delete in snapshot" in (state.wiped_by or "")
    assert not state.has_rows


def test_a_first_load_that_failed_leaves_a_table_that_may_still_change(lake: Lake) -> None:
    from pyspark.sql import functions as F

    orders = lake.begin("append", partition_by=("val",))
    frame = orders.spark.createDataFrame([(1, "a", 1)], COLUMNS).withColumn(
        "seq", F.raise_error(F.lit("no")).cast("long")
    )
    with pytest.raises(Exception, match="no"):
        orders.attempt(frame)
    state = orders.target.inspect()
    assert (state.exists, state.has_rows, state.top_ordinal) == (True, False, 0)
    again = lake.begin("append")
    again.load([(1, 2, 1)], "id bigint, val bigint, seq bigint")
    assert again.rows() == [(1, 2, 1)]
    assert lake.table().spec().fields == ()
