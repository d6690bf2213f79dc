"""What every target that has mode history must do, beside `TargetContract`, whose fixtures it uses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from floodmark.errors import ConfigError
from floodmark.model.names import DELETED
from floodmark.model.outcome import Rows
from floodmark.model.spec import PipelineSpec
from floodmark.testing.target_suite import AT, COLUMNS, Loading, a_spec

MARKED = f"{COLUMNS}, {DELETED} boolean"
Begin = Callable[[PipelineSpec], Loading]


def versions(orders: Loading, *names: str) -> list[tuple[Any, ...]]:
    """By key: what held from where to where; the current one ends at None."""
    begins, ends, current = names or ("valid_from", "valid_to", "is_current")
    found = orders.rows("id", begins, "val", ends, current)
    assert all(bool(now) == (end is None) for *_, end, now in found), "the flag says what the end says"
    return [row[:4] for row in found]


class HistoryContract:
    def test_each_change_is_a_version(self, begin: Begin) -> None:
        orders = begin(a_spec("history"))
        orders.load([(1, "a", 1), (2, "a", 1), (2, "b", 4), (2, "c", 6)])
        assert versions(orders) == [(1, 1, "a", None), (2, 1, "a", 4), (2, 4, "b", 6), (2, 6, "c", None)]
        landed = orders.load([(1, "b", 5), (3, "new", 5), (2, "c", 7)])
        assert (landed.rows.inserted, landed.rows.deleted) == (2, 0)
        assert versions(orders) == [
            (1, 1, "a", 5),
            (1, 5, "b", None),
            (2, 1, "a", 4),
            (2, 4, "b", 6),
            (2, 6, "c", None),
            (3, 5, "new", None),
        ]

    def test_reading_again_changes_nothing(self, begin: Begin) -> None:
        orders = begin(a_spec("history"))
        rows = [(1, "a", 1), (1, "b", 3), (2, "a", 1)]
        orders.load(rows)
        before = versions(orders)
        for again in ({}, {"later_wins": True}):
            landed = orders.load(rows, **again)
            assert landed.rows == Rows(3, 0, 0, 0)
            orders.load(rows[1:], **again)
        assert versions(orders) == before
        assert orders.attempt(orders.spark.createDataFrame([(1, "other", 9)], COLUMNS), ordinal=1, batch="x") is None
        assert versions(orders) == before

    def test_a_late_change_lies_where_it_belongs(self, begin: Begin) -> None:
        orders = begin(a_spec("history"))
        orders.load([(1, "a", 2), (1, "c", 8), (2, "a", 2)])
        orders.load([(2, "a", 9)])
        orders.load([(1, "b", 5), (1, "before", 1), (2, "b", 5)])
        assert versions(orders) == [
            (1, 1, "before", 2),
            (1, 2, "a", 5),
            (1, 5, "b", 8),
            (1, 8, "c", None),
            (2, 2, "a", 5),
            (2, 5, "b", 9),
            (2, 9, "a", None),
        ]

    def test_a_delete_closes_the_row(self, begin: Begin) -> None:
        orders = begin(a_spec("history"))
        orders.load([(1, "a", 1, False), (2, "a", 1, None), (3, "never there", 1, True)], MARKED)
        orders.load([(1, None, 4, True), (2, "b", 3, False), (2, None, 5, True)], MARKED)
        closed = [(1, 1, "a", 4), (2, 1, "a", 3), (2, 3, "b", 5)]
        assert versions(orders) == closed
        orders.load([(1, None, 4, True), (1, None, 6, True)], MARKED)
        assert versions(orders) == closed, "deleted again, and still since the first time"
        orders.load([(1, "back", 8, False), (2, "late", 4, False)], MARKED)
        assert versions(orders) == [
            (1, 1, "a", 4),
            (1, 8, "back", None),
            (2, 1, "a", 3),
            (2, 3, "b", 4),
            (2, 4, "late", 5),
        ]

    def test_at_one_moment_and_above_the_mark_the_later_read_counts(self, begin: Begin) -> None:
        orders = begin(a_spec("history"))
        orders.load([(1, "a", 1), (1, "b", 5), (2, "a", 1), (2, "b", 5)])
        orders.load([(1, "corrected", 5)])
        orders.load([(2, "the source's last word", 3)], later_wins=True)
        assert versions(orders) == [
            (1, 1, "a", 5),
            (1, 5, "corrected", None),
            (2, 1, "a", 3),
            (2, 3, "the source's last word", None),
        ]
        orders.load([(1, "a", 5)])
        assert versions(orders)[:2] == [(1, 1, "a", None), versions(orders)[1]], "two versions that are one by now"

    def test_whole_tables_one_after_the_other(self, begin: Begin) -> None:
        names = {"valid_from": "since", "valid_to": "up to", "is_current": "now?"}
        orders = begin(a_spec("history", by="none", history=names))
        day = [AT + timedelta(days=n) for n in range(4)]
        orders.load([(1, "a", 1), (2, "a", 1), (3, "a", 1)], at=day[0])
        orders.load([(1, "a", 1), (2, "b", 1)], at=day[1])
        assert orders.load([(1, "a", 1), (2, "b", 1)], at=day[2]).rows.inserted == 0
        moments = ("since", "up to")
        found = [(i, v) for i, _, v, _ in versions(orders, *names.values())]
        assert found == [(1, "a"), (2, "a"), (2, "b"), (3, "a")]
        ends = [row[0] is not None for row in orders.world.read("orders", moments[1:])]
        assert sorted(ends) == [False, False, True, True]
        orders.load([], at=day[3])
        assert all(end is not None for (end,) in orders.world.read("orders", moments[1:]))

    def test_a_full_refresh_begins_anew(self, begin: Begin) -> None:
        orders = begin(a_spec("history"))
        orders.load([(1, "a", 1)])
        orders.load([(1, "b", 2)])
        orders.load([(1, "b", 2), (2, "x", 3)], full=True)
        assert versions(orders) == [(1, 2, "b", None), (2, 3, "x", None)]

    def test_a_new_column_of_a_history(self, begin: Begin) -> None:
        orders = begin(a_spec("history"))
        orders.load([(1, "a", 1), (2, "a", 1)])
        orders.load([(1, "a", 2, 7)], f"{COLUMNS}, more int")
        assert orders.rows("id", "valid_from", "valid_to", "more") == [
            (1, 1, 2, None),
            (1, 2, None, 7),
            (2, 1, None, None),
        ]

    def test_names_that_are_taken(self, begin: Begin) -> None:
        with pytest.raises(ConfigError, match="valid_to of their own"):
            begin(a_spec("history")).load([(1, "a", 1, 1)], f"{COLUMNS}, valid_to int")
        with pytest.raises(ConfigError, match="text"):
            begin(a_spec("history")).load([(1, "a", "1")], "id bigint, val string, seq string")
