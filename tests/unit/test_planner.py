"""Slices: together they cover the window once, without gaps, and the mark never passes what is proven."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from floodmark.model.ledger import Ahead, PipelineState, reset, settle
from floodmark.model.plan import Guarantee, Look, Slice
from floodmark.model.position import Position
from floodmark.model.spec import PipelineSpec, SequenceSpec, SourceSpec
from floodmark.model.target import TargetSpec
from floodmark.planner import plan_run, slices

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def spec(mode: str, batch_rows: int) -> PipelineSpec:
    return PipelineSpec(
        name="p",
        source=SourceSpec(connection="a", table="t"),
        change=SequenceSpec(by="sequence", column="id"),
        target=TargetSpec(connection="b", table="t", mode=mode, keys=("id",) if mode == "upsert" else ()),  # type: ignore[arg-type]
        batch_rows=batch_rows,
    )


def cut_of(values: list[int]):  # type: ignore[no-untyped-def]
    """A source that holds these values, and cuts as every source must."""

    def cut(after: Position | None, until: Position, rows: int) -> Position | None:
        inside = sorted(v for v in values if (after is None or v >= after.values[0]) and v < until.values[0])  # type: ignore[operator]
        if len(inside) <= rows:
            return None
        at = inside[rows]
        if at == inside[0]:
            at = next((v for v in inside if v > at), None)  # type: ignore[assignment]
        return None if at is None else Position.before(at)

    return cut


def look_at(values: list[int], after: Position | None, proven: int | None) -> Look:
    seen = [v for v in values if after is None or v >= after.values[0]]  # type: ignore[operator]
    return Look(
        clock=NOW,
        proven=after if proven is None else Position.before(proven),
        settled=after if proven is None else Position.before(proven),
        pending=None,
        rows=len(seen),
        rows_proven=0 if proven is None else sum(v < proven for v in seen),
        rows_settled=0 if proven is None else sum(v < proven for v in seen),
        until=Position.after(max(seen)) if seen else None,
        guarantee=Guarantee("fenced"),
        unchanged=not seen,
    )


def holds(piece: Slice, value: int) -> bool:
    low = piece.after is None or value >= piece.after.values[0]  # type: ignore[operator]
    return low and (piece.until is None or value < piece.until.values[0])  # type: ignore[operator]


@given(
    values=st.lists(st.integers(0, 60), min_size=1, max_size=120),
    batch_rows=st.integers(1, 40),
    proven=st.none() | st.integers(0, 70),
    mode=st.sampled_from(["append", "upsert"]),
)
def test_each_visible_row_is_in_one_slice(values: list[int], batch_rows: int, proven: int | None, mode: str) -> None:
    pipeline, state = spec(mode, batch_rows), PipelineState(pipeline="p")
    plan = plan_run(pipeline, state, look_at(values, None, proven))
    pieces = [] if plan.nothing_new else list(slices(plan, pipeline, state, cut_of(values)))
    wanted = [v for v in values if mode == "upsert" or (proven is not None and v < proven)]
    for value in wanted:
        assert sum(holds(piece, value) for piece in pieces) == 1
    if mode == "append":
        assert not any(holds(p, v) for p in pieces for v in values if proven is None or v >= proven)


@given(
    values=st.lists(st.integers(0, 60), min_size=1, max_size=120),
    batch_rows=st.integers(1, 40),
    proven=st.integers(0, 70),
    mode=st.sampled_from(["append", "upsert"]),
)
def test_the_mark_ends_at_what_is_proven(values: list[int], batch_rows: int, proven: int, mode: str) -> None:
    from floodmark.model.ledger import Intent

    pipeline, state = spec(mode, batch_rows), PipelineState(pipeline="p")
    plan = plan_run(pipeline, state, look_at(values, None, proven))
    if plan.nothing_new:
        return
    for number, piece in enumerate(slices(plan, pipeline, state, cut_of(values)), 1):
        intent = Intent(batch=str(number), ordinal=number, after=piece.after, until=piece.until, mark=piece.mark)
        state = settle(state, intent, version=number, table_id="t", rows=1, at=NOW)
        assert state.mark is None or state.mark.values[0] <= proven  # type: ignore[operator]
    assert state.mark == Position.before(proven)


def test_rows_that_are_known_are_not_read_and_the_window_is_the_same() -> None:
    known = Ahead(count=3, checksum="c", until=Position.before(10))
    look = replace(look_at(list(range(7, 20)), Position.before(7), 20), known=known)
    pieces = {}
    for mode, batch_rows in (("upsert", 10), ("upsert", 9), ("append", 100), ("replace_range", 100)):
        pipeline, state = spec(mode, batch_rows), PipelineState(pipeline="p", start=Position.before(7))
        plan = plan_run(pipeline, state, look)
        pieces[mode, batch_rows] = list(slices(plan, pipeline, state, cut_of(list(range(7, 20)))))
    (one,) = pieces["upsert", 10]
    assert (one.after, one.known, one.until, one.rows) == (Position.before(7), known.until, look.proven, 10)
    # Cut into slices, or where the mode adds or replaces what it reads, everything from the mark on is read.
    assert all(piece.known is None for key in list(pieces)[1:] for piece in pieces[key])


def test_after_a_reset_append_replaces_until_it_has_caught_up() -> None:
    from floodmark.model.ledger import Intent

    pipeline, values = spec("append", 10), list(range(40))
    first = Intent(batch="1", ordinal=1, after=None, until=Position.before(30), mark=Position.before(30))
    state = settle(PipelineState(pipeline="p"), first, version=1, table_id="t", rows=30, at=NOW)
    state = reset(state, Position.before(5))
    plan = plan_run(pipeline, state, look_at(values, state.mark, 40))
    pieces = list(slices(plan, pipeline, state, cut_of(values)))
    assert [p.replaces for p in pieces] == [True, True, True, False]
