"""The versions that events make, against plain Python: whatever the order they come in, and however often."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.connections.names import quote
from floodmark.model.outcome import Load
from floodmark.model.target import HistorySpec
from floodmark.targets.history import Timeline
from floodmark.testing.target_suite import a_load, a_spec

Event = tuple[int, int, str | None]
"""Key, moment, value; None is a delete."""


def loading(*, later_wins: bool = False) -> Load:
    return a_load(a_spec("history"), 1, later_wins=later_wins)


class Table:
    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        columns = "id, val, seq, valid_from, valid_to, is_current"
        self.db.execute(f"CREATE TABLE versions ({columns})")
        self.db.execute(f"CREATE TABLE batch ({columns}, _floodmark_deleted)")

    def take(self, events: Iterable[Event], *, later_wins: bool = False) -> None:
        self.db.execute("DELETE FROM batch")
        rows = [(key, val, at, at, val is None) for key, at, val in events]
        self.db.executemany("INSERT INTO batch VALUES (?, ?, ?, ?, NULL, 1, ?)", rows)
        load = loading(later_wins=later_wins)
        timeline = Timeline(quote, "{} IS NOT {}", HistorySpec(), ["id", "val", "seq"], load, "0", has_deletes=True)
        kept = "(SELECT * FROM versions WHERE id IN (SELECT id FROM batch))"
        found = self.db.execute(timeline.versions("batch", kept)).fetchall()
        self.db.execute("DELETE FROM versions WHERE id IN (SELECT id FROM batch)")
        self.db.executemany("INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?)", found)

    def versions(self) -> list[tuple[object, ...]]:
        return self.db.execute("SELECT id, valid_from, valid_to, val FROM versions ORDER BY 1, 2").fetchall()


def expected(events: Sequence[Event]) -> list[tuple[object, ...]]:
    """One after the other, as if they had come in order."""
    found: list[list[object]] = []
    for key in sorted({key for key, _, _ in events}):
        timeline = sorted({at: val for k, at, val in events if k == key}.items())
        now: str | None = None
        for at, val in timeline:
            if val == now:
                continue
            if now is not None:
                found[-1][2] = at
            if val is not None:
                found.append([key, at, None, val])
            now = val
    return [tuple(row) for row in found]


def dealt(events: Sequence[Event], seed: int) -> list[list[Event]]:
    """Into batches, some of them read twice."""
    shuffled = random.Random(seed)
    batches: list[list[Event]] = [[] for _ in range(shuffled.randint(1, 5))]
    for event in events:
        shuffled.choice(batches).append(event)
    return [*batches, shuffled.choice(batches)]


keys, moments = st.integers(1, 2), st.integers(0, 9)


@given(st.sets(st.tuples(keys, moments), max_size=14), st.integers(0, 99))
def test_events_in_any_order_make_the_same_versions(given_events: set[tuple[int, int]], seed: int) -> None:
    # Each with a value of its own: where nothing changes, only the last sight of it is remembered.
    events: list[Event] = [(key, at, f"{key}@{at}") for key, at in given_events]
    table = Table()
    for batch in dealt(events, seed):
        table.take(batch)
    assert table.versions() == expected(events)


@given(st.dictionaries(st.tuples(keys, moments), st.sampled_from(["a", "b", None]), max_size=14), st.integers(1, 5))
def test_what_says_nothing_new_makes_no_version(given_events: dict[tuple[int, int], str | None], size: int) -> None:
    events = [(key, at, val) for (key, at), val in given_events.items()]
    events.sort(key=lambda event: event[1])
    table = Table()
    for start in range(0, len(events), size):
        table.take(events[start : start + size])
        table.take(events[max(0, start - 2) : start + size], later_wins=False)
    assert table.versions() == expected(events)


@pytest.mark.parametrize("later_wins", [False, True])
def test_the_last_word(later_wins: bool) -> None:
    table = Table()
    table.take([(1, 1, "a"), (1, 5, "b"), (1, 7, None)])
    table.take([(1, 3, "c")], later_wins=later_wins)
    placed = [(1, 1, 3, "a"), (1, 3, 5, "c"), (1, 5, 7, "b")]
    assert table.versions() == ([placed[0], (1, 3, None, "c")] if later_wins else placed)
