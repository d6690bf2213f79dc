"""How far the mark may move, from what a source could find out about its writers."""

from __future__ import annotations

from datetime import datetime, timedelta

from floodmark.model.duration import show_duration
from floodmark.model.ledger import PendingLook
from floodmark.model.plan import Guarantee
from floodmark.model.position import Position
from floodmark.model.table import Cursor
from floodmark.ports import LookRequest


def unit_of(cursor: Cursor) -> timedelta:
    """The smallest step of the leading timestamp."""
    return timedelta(microseconds=10 ** (6 - cursor.leading.precision))


def floor_to(moment: datetime, unit: timedelta) -> datetime:
    whole = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return whole + (moment - whole) // unit * unit


def delayed(delay: timedelta, reason: str, fix: str = "") -> Guarantee:
    return Guarantee("delayed" if delay else "none", show_duration(delay) if delay else "", reason, fix)


def delayed_bound(
    request: LookRequest, clock: datetime, highest: Position | None
) -> tuple[Position | None, PendingLook | None]:
    """Without sight of the writers: what is older than the safety delay counts as final. A timestamp tells its age;
    for a sequence the look itself has to grow old, so it stays pending until then."""
    if request.cursor.leading.kind == "timestamp":
        unit = unit_of(request.cursor)
        return later_of(request.after, Position.before(floor_to(clock - request.delay, unit) - unit)), None
    if not request.delay:
        return later_of(request.after, highest), None
    pending = request.pending
    if pending is not None and clock - pending.taken_at >= request.delay:
        fresh = None if highest is None else PendingLook(bound=highest, taken_at=clock)
        return pending.bound, fresh
    if pending is not None or highest is None:
        return request.after, pending
    return request.after, PendingLook(bound=highest, taken_at=clock)


def later_of(mark: Position | None, bound: Position | None) -> Position | None:
    """A bound never moves the mark back. Text has no order here: it comes from the highest value above the mark."""
    if bound is None:
        return mark
    if mark is None or isinstance(mark.values[0], str) or isinstance(bound.values[0], str):
        return bound
    # A bound on a clock is a prefix of the cursor: its first value decides, whatever kind the others are of.
    return bound if mark.values[:1] < bound.values[:1] or _follows(bound, mark) else mark


def _follows(bound: Position, mark: Position) -> bool:
    return bound.is_comparable and mark.is_comparable and mark.precedes(bound)
