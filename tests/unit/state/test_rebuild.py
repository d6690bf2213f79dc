"""From the target's heads to the ledger: the same mark, whatever happened on the way."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from floodmark.model.ledger import Intent, PipelineState, begin, reset, settle
from floodmark.model.outcome import Head, Kept, Landed, Rows
from floodmark.model.position import Position
from floodmark.model.rebuild import rebuild

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


class Story:
    """A pipeline's life: the state as the store would have it, and the heads that the target keeps of it."""

    def __init__(self, text: bool = False) -> None:
        self.state = PipelineState(pipeline="orders")
        self.landed: list[Landed] = []
        self.kept: list[Kept] = []
        """As table care would have written it after each load, oldest first."""
        self._text = text
        self._ordinal = 0

    def at(self, value: int | None) -> Position | None:
        return None if value is None else Position.before(str(value) if self._text else value)

    def load(self, until: int | None, mark: int | None = None, *, full: bool = False, writes: bool = True) -> None:
        self._ordinal += 1
        intent = Intent(
            batch=f"b{self._ordinal}",
            ordinal=self._ordinal,
            after=None if full else self.state.mark,
            until=self.at(until),
            mark=self.at(mark),
            run=f"r{self._ordinal // 2}",
            full=full,
        )
        at = NOW + timedelta(minutes=self._ordinal)
        before = begin(self.state, intent)
        self.state = settle(before, intent, version=self._ordinal, table_id="t", rows=4, at=at)
        head = Head(
            pipeline="orders",
            lane="main",
            ordinal=self._ordinal,
            batch=intent.batch,
            start=self.state.start,
            after=intent.after,
            until=intent.until,
            mark=intent.mark,
            full=full,
            epoch=1,
            run=intent.run,
            at=at,
            identity={"n": self._ordinal},
        )
        if writes:
            self.landed.insert(0, Landed(head, self._ordinal, "t", Rows(inserted=3, updated=1)))
            ordinal = self._ordinal
            self.kept.append(Kept(table_id="t", seen=ordinal, at=at, version=ordinal, head=head, state=self.state))

    def rebuilt(self, newest: int | None = None) -> PipelineState:
        state = rebuild("orders", self.landed[:newest])
        assert state is not None
        return state


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["load", "load", "load", "load", "ahead", "unproven", "full", "whole", "reset", "empty"]),
        st.integers(1, 9),
        st.integers(0, 40),
    ),
    max_size=40,
)


def play(steps: list[tuple[str, int, int]], text: bool) -> Story:
    story, mark = Story(text), 0
    for step, width, place in steps:
        marks_nothing = story.state.mark is None
        if step == "reset" and marks_nothing and not place:
            continue  # from nowhere to the beginning: it changes nothing, and no head could tell of it
        if step == "reset":
            mark = place
            story.state = reset(story.state, story.at(place or None))
        elif step == "whole":
            story.load(None, None, full=True)
            mark = 0
        elif step == "unproven":
            story.load(mark + width, None if marks_nothing else mark)
        else:
            mark = width if step == "full" else mark + width
            story.load(mark + (3 if step == "ahead" else 0), mark, full=step == "full", writes=step != "empty")
    story.load(mark + 1, mark + 1)
    return story


@given(STEPS, st.booleans())
def test_the_mark_is_the_same(steps: list[tuple[str, int, int]], text: bool) -> None:
    story = play(steps, text)
    rebuilt, kept = story.rebuilt(), story.state
    assert (rebuilt.mark, rebuilt.start, rebuilt.head) == (kept.mark, kept.start, kept.head)


@given(STEPS)
def test_how_far_rows_go_is_the_same(steps: list[tuple[str, int, int]]) -> None:
    story = play([step for step in steps if step[0] != "empty"], text=False)
    assert story.rebuilt().reached == story.state.reached


@given(STEPS, st.booleans(), st.integers(1, 10))
def test_expired_history_does_not_move_the_mark(steps: list[tuple[str, int, int]], text: bool, known: int) -> None:
    story = play(steps, text)
    rebuilt = story.rebuilt(newest=known)
    assert (rebuilt.mark, rebuilt.start, rebuilt.head) == (story.state.mark, story.state.start, story.state.head)


@given(STEPS, st.booleans(), st.data())
def test_the_next_load_goes_on_from_it(steps: list[tuple[str, int, int]], text: bool, data: Any) -> None:
    story = play(steps, text)
    story.state = story.rebuilt(newest=data.draw(st.integers(1, 5)))
    story.load(1000, 1000)
    assert story.state.mark == story.rebuilt().mark == story.at(1000)


@given(STEPS, st.data())
def test_on_top_of_what_the_table_keeps_nothing_is_lost(steps: list[tuple[str, int, int]], data: Any) -> None:
    """Neither the mark nor how far rows go, though only a few heads are left, or none."""
    story = play([step for step in steps if step[0] != "empty"], text=False)
    kept = data.draw(st.sampled_from(story.kept))
    newer = [landed for landed in story.landed if landed.head.ordinal > kept.head.ordinal]
    rebuilt = rebuild("orders", newer, Kept.from_dict(json.loads(json.dumps(kept.to_dict()))))
    assert rebuilt is not None
    told = (rebuilt.mark, rebuilt.start, rebuilt.reached, rebuilt.head, rebuilt.rows_total)
    known = story.state
    assert told == (known.mark, known.start, known.reached, known.head, known.rows_total)
    assert rebuild("orders", story.landed, kept) == rebuilt


def test_no_head_no_state() -> None:
    assert rebuild("orders", []) is None
    story = Story()
    story.load(5, 5)
    assert rebuild("another", story.landed) is None


def test_the_windows_are_those_of_the_heads() -> None:
    story = Story()
    story.load(5, 5)
    story.load(9, 7)
    rebuilt = story.rebuilt()
    assert rebuilt.windows == story.state.windows
    assert rebuilt.but(windows=()) == story.state.but(
        windows=(),
        identity={"n": 2},
        run_count=2,
        last_run_id="r1",
        last_run_at=NOW + timedelta(minutes=2),
    )


def test_expired_history_is_one_folded_window() -> None:
    story = Story()
    for until in range(1, 9):
        story.load(until, until)
    windows = story.rebuilt(newest=2).windows
    assert [(w.after, w.until, w.folded) for w in windows] == [
        (None, story.at(6), 5),
        (story.at(6), story.at(7), 0),
        (story.at(7), story.at(8), 0),
    ]


def test_what_came_before_a_full_load_does_not_count() -> None:
    story = Story()
    story.load(50, 50)
    story.load(5, 5, full=True)
    story.load(7, 7)
    rebuilt = story.rebuilt()
    assert (rebuilt.mark, rebuilt.reached, len(rebuilt.windows)) == (story.at(7), None, 2)


def test_a_head_that_table_care_stamped_again_counts_once() -> None:
    story = Story()
    story.load(5, 5)
    story.load(9, 9)
    stamped = replace(story.landed[0], version=77)
    again = rebuild("orders", [stamped, *story.landed])
    assert again == story.rebuilt()


def test_other_lanes_leave_the_mark_alone() -> None:
    story = Story()
    story.load(5, 5)
    story.load(9, 9)
    head = story.landed[0].head
    backfill = head.but(lane="backfill-1", ordinal=3, batch="b3", after=None, until=story.at(3), mark=story.at(9))
    rebuilt = rebuild("orders", [replace(story.landed[0], head=backfill), *story.landed])
    assert rebuilt is not None
    assert rebuilt.mark == story.at(9)
    assert rebuilt.head is not None
    assert rebuilt.head.ordinal == 3
    assert [(w.lane, w.until) for w in rebuilt.windows][-1] == ("backfill-1", story.at(3))


def test_a_history_that_begins_with_a_backfill_tells_the_mark() -> None:
    story = Story()
    story.load(9, 9)
    backfill = story.landed[0].head.but(lane="backfill-1", ordinal=7, after=None, until=story.at(3))
    rebuilt = rebuild("orders", [replace(story.landed[0], head=backfill)])
    assert rebuilt is not None
    assert rebuilt.mark == story.at(9)


def test_heads_that_contradict_each_other_still_give_the_newest_mark() -> None:
    story = Story()
    story.load(5, 5)
    odd = story.landed[0].head.but(ordinal=9, start=story.at(2), after=None, until=story.at(8), mark=story.at(8))
    rebuilt = rebuild("orders", [replace(story.landed[0], head=odd), *story.landed])
    assert rebuilt is not None
    assert (rebuilt.start, rebuilt.mark) == (story.at(2), story.at(8))
