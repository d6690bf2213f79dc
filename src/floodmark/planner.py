"""Spec, ledger and look to a plan. Pure: no clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import ceil

from floodmark.model.ledger import PipelineState, furthest, holds_whole_table
from floodmark.model.plan import Guarantee, Look, RunPlan, Slice
from floodmark.model.position import Position, earlier, has_passed
from floodmark.model.spec import PipelineSpec

Cut = Callable[[Position | None, Position, int], Position | None]
"""`Source.next_cut` on the pipeline's cursor."""


def plan_whole_table(spec: PipelineSpec, state: PipelineState, *, full_refresh: bool = False) -> RunPlan:
    """No cursor: everything, each time."""
    return RunPlan(
        pipeline=spec.name,
        after=None,
        proven=None,
        until=None,
        rows=None,
        rows_ahead=0,
        rows_waiting=0,
        slices=1,
        guarantee=Guarantee("exact"),
        full=full_refresh or spec.target.mode == "replace",
        first=state.head is None,
    )


def plan_run(spec: PipelineSpec, state: PipelineState, look: Look, *, full_refresh: bool = False) -> RunPlan:
    """Idempotent modes load all that is visible, so freshness never waits; append loads only what is settled."""
    append = spec.target.appends
    rows = look.rows_settled if append else look.rows
    known = look.known if spec.target.matches_keys and not state.unfilled else None
    # A refresh took all that was visible while nothing was settled: only the whole of it can be replaced.
    unsettled = append and rows > 0 and holds_whole_table(state) and not full_refresh
    full = full_refresh or unsettled
    to_read = rows if known is None or full else rows - known.count
    return RunPlan(
        pipeline=spec.name,
        after=None if unsettled else state.start if full else state.mark,
        proven=look.proven,
        until=look.settled if append else _furthest(look),
        rows=to_read,
        rows_ahead=rows - look.rows_proven,
        rows_waiting=look.rows - rows,
        slices=1 if full else max(1, ceil(to_read / spec.batch_rows)),
        guarantee=look.guarantee,
        pending=look.pending,
        ahead=look.ahead,
        full=full,
        nothing_new=((look.unchanged and not state.unfilled) or rows == 0) and not full,
        first=state.head is None,
        clock=look.clock,
        server=look.server,
        known=None if known is None or full else known.until,
    )


def plan_backfill(spec: PipelineSpec, after: Position | None, until: Position, rows: int) -> RunPlan:
    """A range below the mark, whatever it held. In append it is one commit, also where the source has no row left."""
    append = spec.target.appends
    return RunPlan(
        pipeline=spec.name,
        after=after,
        proven=until,
        until=until,
        rows=rows,
        rows_ahead=0,
        rows_waiting=0,
        slices=1 if append else max(1, ceil(rows / spec.batch_rows)),
        guarantee=Guarantee("exact"),
        nothing_new=rows == 0 and not append,
    )


def _furthest(look: Look) -> Position | None:
    """Beyond the last visible row, or the bound when no row lies above it."""
    if look.proven is not None and look.rows == look.rows_proven:
        return look.proven
    return look.until


def slices(plan: RunPlan, spec: PipelineSpec, state: PipelineState, cut: Cut) -> Iterator[Slice]:
    """Cut lazily, each from the position that the last one reached, so that a first load never plans rows that are
    gone when it gets there. Below the bound the mark follows; above it rows are only loaded ahead."""
    for piece in _cut_apart(plan, spec, state, cut):
        yield piece if piece.full or spec.target.mode != "replace_range" else replace(piece, replaces=True)


def _cut_apart(plan: RunPlan, spec: PipelineSpec, state: PipelineState, cut: Cut) -> Iterator[Slice]:
    size, rows = spec.batch_rows, plan.rows or 0
    if plan.full or plan.until is None or rows <= size:
        repeat = not plan.full and _is_repeat(spec, state, plan.after)
        yield Slice(plan.after, plan.until, plan.proven, plan.rows, plan.full, repeat, plan.ahead, plan.known)
        return
    after = plan.after
    if (again := _looked_back(spec, state, plan)) is not None:
        # In one commit: a row that has moved inside the stretch is never seen twice, nor missing.
        last = again == plan.until
        ahead = plan.ahead if last else None
        yield Slice(after, again, earlier(plan.proven, again), None, replaces=True, ahead=ahead)
        if last:
            return
        after = again
    if plan.proven not in (None, after) and not has_passed(after, plan.proven):
        while (at := cut(after, plan.proven, size)) is not None:
            yield Slice(after, at, at, size, replaces=_is_repeat(spec, state, after))
            after = at
        if plan.rows_ahead <= size:
            yield Slice(after, plan.until, plan.proven, None, False, _is_repeat(spec, state, after), plan.ahead)
            return
        yield Slice(after, plan.proven, plan.proven, None)
        after = plan.proven
    while (at := cut(after, plan.until, size)) is not None:
        yield Slice(after, at, after, size)
        after = at
    yield Slice(after, plan.until, after, None, ahead=plan.ahead)


def _looked_back(spec: PipelineSpec, state: PipelineState, plan: RunPlan) -> Position | None:
    """Up to where an append with a lookback has to replace rows that it loaded before."""
    if not _looks_back(spec):
        return None
    reached = furthest(state)
    return None if reached is None or has_passed(plan.after, reached) else earlier(reached, plan.until)


def _looks_back(spec: PipelineSpec) -> bool:
    return spec.target.appends and getattr(spec.change, "lookback", None) is not None


def _is_repeat(spec: PipelineSpec, state: PipelineState, after: Position | None) -> bool:
    """After a reset to an earlier position, and with a lookback or after one, append must replace what the range
    already holds."""
    ahead = any(w.state == "loaded" for w in state.windows)
    reached = furthest(state) if ahead or _looks_back(spec) else state.reached
    if not spec.target.appends or reached is None:
        return False
    if after is None:
        return True
    if not (after.is_comparable and reached.is_comparable):
        return True
    return after.precedes(reached)
