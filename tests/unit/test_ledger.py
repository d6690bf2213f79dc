"""The mark as a chain of windows, and what settling, folding and resetting do to it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.model.ledger import (
    Ahead,
    Intent,
    PipelineState,
    begin,
    gaps,
    reset,
    settle,
)
from floodmark.model.position import Position
from floodmark.model.window import KEPT_WINDOWS, Window, WindowState, fold

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
EMPTY = PipelineState(pipeline="orders")


def at(value: int | str | None) -> Position | None:
    return None if value is None else Position.before(value)


def window(after: int | str | None, until: int | str | None, state: WindowState = "committed", **more: Any) -> Window:
    return Window(after=at(after), until=at(until), state=state, batch="b", ordinal=1, **more)


def load(
    state: PipelineState, until: int | str | None, *, mark: int | str | None = None, full: bool = False, rows: int = 10
) -> PipelineState:
    """What a run does: from the mark up to `until`, proven up to `mark` (all of it unless said)."""
    ordinal = (state.head.ordinal if state.head else 0) + 1
    intent = Intent(
        batch=f"b{ordinal}",
        ordinal=ordinal,
        after=None if full else state.mark,
        until=at(until),
        mark=at(until if mark is None else mark),
        full=full,
        ahead=None if mark is None else Ahead(count=1, checksum="c"),
    )
    return settle(begin(state, intent), intent, version=ordinal, table_id="t", rows=rows, at=NOW)


def spans(state: PipelineState) -> list[tuple[Any, Any, str]]:
    def value(position: Position | None) -> Any:
        return None if position is None else position.values[0]

    return [(value(w.after), value(w.until), w.state) for w in state.windows]


class TestMark:
    def test_an_empty_ledger_stands_at_its_start(self) -> None:
        assert EMPTY.mark is None
        assert EMPTY.but(start=at(5)).mark == at(5)

    @given(st.lists(st.integers(), unique=True, max_size=20).map(sorted), st.randoms())
    def test_it_is_the_end_of_the_chain_in_whatever_order_windows_stand(self, cuts: list[int], rng: Any) -> None:
        chain = [window(a, b) for a, b in zip([None, *cuts], cuts, strict=False)]
        rng.shuffle(chain)
        assert EMPTY.but(windows=tuple(chain)).mark == at(cuts[-1] if cuts else None)

    def test_a_hole_ends_it(self) -> None:
        assert EMPTY.but(windows=(window(None, 5), window(6, 9))).mark == at(5)

    def test_it_needs_no_order_so_text_works(self) -> None:
        assert EMPTY.but(windows=(window("b", "Ä"), window(None, "b"))).mark == at("Ä")

    @pytest.mark.parametrize("state", ["planned", "loaded"])
    def test_only_what_is_committed_counts(self, state: WindowState) -> None:
        assert EMPTY.but(windows=(window(None, 5), window(5, 9, state))).mark == at(5)
        assert EMPTY.but(windows=(window(None, 5, "verified"), window(5, 9))).mark == at(9)

    def test_a_backfill_inside_does_not_pull_it_back(self) -> None:
        main = (window(None, 10), window(10, 20), window(20, 30))
        assert EMPTY.but(windows=(*main, window(10, 15, lane="backfill-1"))).mark == at(30)

    def test_a_ring_ends(self) -> None:
        assert EMPTY.but(start=at(1), windows=(window(1, 2), window(2, 1))).mark == at(2)

    def test_it_is_in_the_stored_form_and_derived_again(self) -> None:
        form = load(EMPTY, 5).to_dict()
        assert form["mark"] == {"integer": 5}
        assert PipelineState.from_dict({**form, "mark": {"integer": 99}}).mark == at(5)


class TestSettle:
    def test_the_whole_window_proven(self) -> None:
        state = load(load(EMPTY, 5), 9)
        assert spans(state) == [(None, 5, "committed"), (5, 9, "committed")]
        assert (state.mark, state.intent, state.ahead, state.rows_total) == (at(9), None, None, 20)
        assert state.head is not None
        assert (state.head.ordinal, state.head.version) == (2, 2)

    def test_the_rest_is_loaded_ahead_until_the_next_load_covers_it(self) -> None:
        state = load(load(EMPTY, 5), 9, mark=7)
        assert spans(state) == [(None, 5, "committed"), (5, 7, "committed"), (7, 9, "loaded")]
        assert (state.mark, state.ahead) == (at(7), Ahead(count=1, checksum="c"))
        state = load(state, 12)
        assert spans(state) == [(None, 5, "committed"), (5, 7, "committed"), (7, 12, "committed")]

    def test_nothing_proven_leaves_the_mark(self) -> None:
        state = load(load(EMPTY, 5), 9, mark=5)
        assert spans(state) == [(None, 5, "committed"), (5, 9, "loaded")]
        assert state.mark == at(5)

    def test_nothing_proven_on_the_first_load_commits_nothing(self) -> None:
        intent = Intent(batch="b", ordinal=1, after=None, until=at(9), mark=None)
        state = settle(EMPTY, intent, version=1, table_id="t", rows=3, at=NOW)
        assert spans(state) == [(None, 9, "loaded")]
        assert state.mark is None

    def test_a_whole_table_refresh_is_one_window_without_positions(self) -> None:
        state = load(load(EMPTY, None, full=True), None, full=True)
        assert spans(state) == [(None, None, "committed")]
        assert (state.mark, state.rows_total) == (None, 20)

    def test_a_full_load_begins_anew(self) -> None:
        before = reset(load(load(EMPTY, 5), 9), at(2))
        state = load(before, 7, full=True)
        assert spans(state) == [(None, 7, "committed")]
        assert (state.mark, state.start, state.reached) == (at(7), None, None)


class TestFold:
    def test_the_ledger_stays_small_and_the_mark_right_over_ten_thousand_windows(self) -> None:
        state = EMPTY
        for until in range(1, 10_001):
            state = load(state, until, rows=1)
        assert len(state.windows) == KEPT_WINDOWS
        assert state.mark == at(10_000)
        first = state.windows[0]
        assert (first.after, first.folded + 1, first.rows) == (None, 10_000 - KEPT_WINDOWS + 1, first.folded + 1)

    def test_it_stays_small_behind_a_gap_and_a_change_of_state(self) -> None:
        state = reset(load(EMPTY, 5), at(50))
        for until in range(51, 400):
            state = load(state, until)
            done = tuple(w.but(state="verified") if w.ordinal < 20 else w for w in state.windows)
            state = state.but(windows=done)
        assert len(state.windows) == KEPT_WINDOWS
        assert (state.mark, gaps(state)) == (at(399), ((at(5), at(50)),))

    @given(st.lists(st.sampled_from(["commit", "gap", "backfill"]), max_size=200))
    def test_it_never_moves_the_mark(self, steps: list[str]) -> None:
        windows, end = [window(None, 0)], 0
        for step in steps:
            after = end + 1 if step == "gap" else end
            windows.append(window(after, after + 1, lane="backfill" if step == "backfill" else "main"))
            end = after + 1
        state = EMPTY.but(windows=tuple(windows))
        assert state.but(windows=fold(state.windows)).mark == state.mark

    def test_unknown_rows_stay_unknown(self) -> None:
        many = tuple(window(n or None, n + 1, rows=None if n == 1 else 1) for n in range(KEPT_WINDOWS + 3))
        assert fold(many)[0].rows is None


class TestReset:
    def test_backward_forgets_the_windows_and_remembers_how_far_rows_go(self) -> None:
        before = load(load(EMPTY, 5), 12, mark=9)
        state = reset(before, at(3))
        assert (state.mark, state.windows, state.reached, state.ahead) == (at(3), (), at(12), None)
        assert state.head == before.head

    def test_what_was_reached_is_forgotten_once_passed(self) -> None:
        state = load(reset(load(EMPTY, 12), at(3)), 11)
        assert state.reached == at(12)
        assert load(state, 12).reached is None

    def test_a_second_reset_still_knows_how_far_rows_go(self) -> None:
        # Or an append from 6 to 12 would double what the first load brought.
        again = reset(load(reset(load(EMPTY, 12), at(3)), 6), None)
        assert again.reached == at(12)

    def test_an_open_load_may_have_brought_rows(self) -> None:
        intent = Intent(batch="b", ordinal=2, after=at(5), until=at(9), mark=at(9))
        state = reset(begin(load(EMPTY, 5), intent), at(2))
        assert (state.intent, state.reached) == (None, at(9))

    def test_forward_keeps_the_windows_and_shows_a_gap(self) -> None:
        state = reset(load(EMPTY, 5), at(8))
        assert (state.mark, spans(state), state.reached) == (at(8), [(None, 5, "committed")], None)
        assert gaps(state) == ((at(5), at(8)),)
        assert gaps(load(state, 12)) == ((at(5), at(8)),)

    def test_to_the_mark_itself_leaves_no_gap(self) -> None:
        state = reset(load(EMPTY, 5), at(5))
        assert (state.mark, gaps(state)) == (at(5), ())

    def test_text_is_taken_as_backward(self) -> None:
        state = reset(load(EMPTY, "m"), at("z"))
        assert (state.mark, state.windows, state.reached) == (at("z"), (), at("m"))


class TestGaps:
    def test_none_in_a_chain(self) -> None:
        assert gaps(load(load(EMPTY, 5), 9, mark=7)) == ()
        assert gaps(EMPTY) == ()

    def test_one_that_was_filled_later_is_gone(self) -> None:
        state = load(reset(load(EMPTY, 5), at(8)), 12)
        filled = state.but(windows=(*state.windows, window(5, 8, lane="backfill-1")))
        assert gaps(filled) == ()
        partly = state.but(windows=(*state.windows, window(6, 7, lane="backfill-1")))
        assert gaps(partly) == ((at(5), at(6)), (at(7), at(8)))

    def test_text_has_none(self) -> None:
        assert gaps(EMPTY.but(windows=(window(None, "a"), window("m", "z")))) == ()
