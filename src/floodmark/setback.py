"""A source that is no longer what it was: another server, an older copy, a clock set back, values below the mark.

What such a source writes may lie below the mark, where nobody looks any more. Modes that may read twice go back by
themselves, once; append, where that would be for its user to decide, refuses and names the ways.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from floodmark.errors import Fallen, Refused
from floodmark.model.ledger import PipelineState, mark_at, reset
from floodmark.model.plan import Look
from floodmark.model.position import Position, earlier
from floodmark.model.spec import FullSpec, PipelineSpec
from floodmark.model.table import TableInfo

REWIND = timedelta(hours=1)
"""A replica that took over may lack what the old primary had written for a while, and its clock may differ a little."""

CLOCK_SLACK = timedelta(seconds=1)
"""Clocks are corrected in small steps all the time; the margin of the bound covers these."""


def server_trouble(state: PipelineState, look: Look) -> str | None:
    """What speaks against the server being the one that the mark comes from."""
    known, now = state.server, look.server
    if known is None or now is None or state.mark is None:
        return None
    if known.identity != now.identity:
        return f"the source's server has changed (it was {known.identity}, it is {now.identity})"
    if known.log is not None and now.log is not None and now.log < known.log:
        return "the source has been set back to an older copy: its log is shorter than it was"
    if now.clock < known.clock - CLOCK_SLACK:
        return f"the source's clock was set back, from {known.clock:%Y-%m-%d %H:%M:%S} to {now.clock:%Y-%m-%d %H:%M:%S}"
    return None


def set_back(
    spec: PipelineSpec, state: PipelineState, look: Look, trouble: str, tell: Callable[[str], None]
) -> PipelineState:
    """One widened re-read: from where the mark stood an hour before the last run, and not above the new clock."""
    to = mark_at(state, (state.last_run_at or look.clock) - REWIND)
    mark = state.mark
    if mark is not None and mark.values and hasattr(mark.values[0], "tzinfo"):
        to = earlier(to, Position.before(look.clock - CLOCK_SLACK))
    if spec.target.appends:
        set_mark = f"floodmark state set {spec.name} --mark"
        raise Refused(
            f"{trouble}, so rows may have been written below the mark ({state.mark})",
            table=spec.source.table,
            declared_at=spec.at("source"),
            hint="choose one:\n"
            f"  {set_mark} '{to or 'POSITION'}'   load again from there; the range is replaced\n"
            f"  {set_mark} '{state.mark}'   go on from the mark with the new server\n"
            f"  floodmark run {spec.name} --full-refresh   load everything again",
        )
    tell(f"{trouble}: read again from {to or 'the beginning'}")
    # The new server has the last word, also where it holds an older row than the one that was lost with the old one.
    return reset(state, to).but(reached=None)


def check_not_fallen(spec: PipelineSpec, state: PipelineState, look: Look, table: TableInfo) -> None:
    """Nothing at or above the mark, and rows below it: a restored backup, numbers that began anew, or just the newest
    rows deleted. A mark that the user has set ahead is no such sign. Once refused, it stays so until it is answered."""
    change, fell_to = spec.change, look.fell_to or state.fell_to
    if fell_to is None or isinstance(change, FullSpec) or change.backwards == "accept":
        return
    if state.mark is None or state.mark == state.start:
        return
    seen = "is" if look.fell_to is not None else "was, when a run last refused,"
    raise Fallen(
        f"the highest value in {table.name} {seen} {fell_to}, below the mark ({state.mark}): it was restored from a "
        "backup, or its numbers begin anew, or its newest rows were deleted",
        table=table.name,
        value=fell_to,
        declared_at=spec.at("change"),
        hint="choose one:\n"
        f"  floodmark run {spec.name} --full-refresh   load everything again\n"
        f"  floodmark state set {spec.name} --mark '{fell_to}'   go back to what the source has, and on from there\n"
        "  backwards: accept   in `change:`, where rows are deleted in the source as a matter of course",
    )
