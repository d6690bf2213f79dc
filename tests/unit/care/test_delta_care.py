"""How long files of a Delta table are kept, and which kept head of it counts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.unit.care.test_due import NOW, head, kept

from floodmark.targets.delta.care import _form, retention
from floodmark.targets.delta.condition import condition
from floodmark.targets.delta.log import Commit, DeltaLog, app_id

DAY = timedelta(days=1)
PROPERTY = "delta.deletedFileRetentionDuration"


@pytest.mark.parametrize(
    ("asked", "keep", "retained"),
    [
        (None, None, 7 * DAY),
        ("interval 1 hour", None, 7 * DAY),
        ("interval 30 days", None, 30 * DAY),
        ("interval 30 days", DAY, 30 * DAY),
        ("interval 1 week 2 days", DAY, 9 * DAY),
        (None, DAY, DAY),
        (None, 30 * DAY, 30 * DAY),
        ("interval 1 hour", timedelta(0), timedelta(hours=1)),
    ],
)
def test_the_longest_that_anybody_asks_for(asked: str | None, keep: timedelta | None, retained: timedelta) -> None:
    assert retention({} if asked is None else {PROPERTY: asked}, keep) == retained


def log(*commits: Commit, **known: Any) -> DeltaLog:
    facts: dict[str, Any] = {
        "table_id": "t",
        "version": commits[0].version if commits else 9,
        "commits": commits,
        "has_files": True,
        "properties": {"floodmark.head.orders": _form(kept(3, NOW))},
        "spent": {app_id("orders"): 3, "floodmark:compact": 0, "floodmark:vacuum": 0},
        **known,
    }
    return DeltaLog(**facts)


def commit(version: int, operation: str = "WRITE", ordinal: int | None = None, to: int | None = None) -> Commit:
    return Commit(version, operation, {"version": to}, {}, 0, None if ordinal is None else head(ordinal))


def test_half_of_what_the_log_is_kept() -> None:
    assert condition(log(properties={})).keep_within == 15 * DAY
    week = {"delta.logRetentionDuration": "interval 1 week"}
    assert condition(log(properties=week)).keep_within == 3.5 * DAY
    assert condition(log(properties={"delta.logRetentionDuration": "interval 0 seconds"})).keep_within == timedelta(0)


def test_a_kept_head_stands_in_for_its_commit() -> None:
    assert [c.head.ordinal for c in log(commit(10)).landed("orders")] == [3]
    assert [c.head.ordinal for c in log(commit(11, ordinal=5), commit(10, ordinal=4)).landed("orders")] == [5, 4, 3]
    assert [c.head.ordinal for c in log(commit(11, ordinal=4), commit(8, ordinal=3)).landed("orders")] == [4, 3]
    assert log(commit(10)).landed("others") == ()


def test_one_that_a_restore_came_before_does_not_count() -> None:
    """It took the rows back while the head was on its way into the properties."""
    assert log(commit(11, "SET TBLPROPERTIES"), commit(10, "RESTORE", to=7)).landed("orders") == ()
    undone_later = log(commit(11, "RESTORE", to=9))
    assert [c.head.ordinal for c in undone_later.landed("orders")] == [3]


def test_one_of_another_table_does_not_count() -> None:
    assert log(table_id="copy").landed("orders") == ()


@pytest.mark.parametrize("written", ["", "{", "{}", '{"head": 3}'])
def test_one_that_is_none(written: str) -> None:
    assert log(properties={"floodmark.head.orders": written}).landed("orders") == ()


def test_an_emptied_table_is_seen_behind_what_care_wrote() -> None:
    emptied = log(commit(12), commit(11, "OPTIMIZE"), commit(10, "TRUNCATE"))
    assert emptied.wiped_by() == "TRUNCATE at version 10"


def test_the_whole_history_is_read_only_where_the_newest_commits_leave_something_open() -> None:
    assert log(commit(11, ordinal=4)).tells_of("orders")
    assert log(commit(11), commit(10)).tells_of("orders")
    assert not log(commit(30), commit(29)).tells_of("orders")
    spent = {app_id("orders"): 5, "floodmark:compact": 0, "floodmark:vacuum": 0}
    assert not log(commit(11), commit(10), spent=spent).tells_of("orders")
