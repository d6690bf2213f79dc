"""How far the mark may move by the clock alone, and which of two cuts comes first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from floodmark.model.duration import show_duration
from floodmark.model.ledger import PendingLook
from floodmark.model.plan import Guarantee
from floodmark.model.position import Position
from floodmark.model.table import Cursor
from floodmark.ports import LookRequest

Top = Callable[[], Position | None]
"""The cut beyond the highest value that is visible now. Looked up only by who needs it."""

QUARTER = timedelta(minutes=15)
"""Clocks are set back at full quarters of an hour."""

LONGEST_REPEAT = timedelta(hours=3)


def unit_of(cursor: Cursor) -> timedelta:
    """The smallest step of the leading timestamp."""
    return timedelta(microseconds=10 ** (6 - cursor.leading.precision))


def floor_to(moment: datetime, unit: timedelta) -> datetime:
    whole = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return whole + (moment - whole) // unit * unit


def clock_bound(cursor: Cursor, moment: datetime) -> Position:
    """Below everything that a clock which shows `moment`, or later, can still write: a column may round up or down."""
    unit = unit_of(cursor)
    if cursor.leading.zoned or cursor.timezone is None:
        return Position.before(floor_to(moment, unit) - unit)
    return Position.before(_earliest(floor_to(_lowest_wall(moment, cursor.timezone), unit) - unit, cursor.timezone))


def _earliest(wall: datetime, timezone: str) -> datetime:
    """What a clock on the wall may mean: in autumn two moments, and in spring, where it skips an hour, one before."""
    zone = ZoneInfo(timezone)
    return min(wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))


def _lowest_wall(moment: datetime, timezone: str) -> datetime:
    """The earliest time that clocks on the wall show from `moment` on: in autumn an hour comes again."""
    zone = ZoneInfo(timezone)
    quarter = floor_to(moment, QUARTER) + QUARTER
    moments = [moment, *(quarter + i * QUARTER for i in range(LONGEST_REPEAT // QUARTER))]
    return min(m.astimezone(zone).replace(tzinfo=None) for m in moments)


def delayed(delay: timedelta, reason: str, fix: str = "") -> Guarantee:
    return Guarantee("delayed" if delay else "none", show_duration(delay) if delay else "", reason, fix)


def delayed_bound(request: LookRequest, clock: datetime, top: Top) -> tuple[Position | None, PendingLook | None]:
    """Without sight of the writers: what is older than the safety delay counts as final. A timestamp tells its age;
    for a sequence the look itself has to grow old, so it stays pending until then."""
    if request.cursor.leading.kind == "timestamp":
        return later_of(request.after, clock_bound(request.cursor, clock - request.delay)), None
    highest = top()
    if not request.delay:
        return later_of(request.after, highest), None
    pending = request.pending
    if pending is not None and clock - pending.taken_at >= request.delay:
        fresh = None if highest is None else PendingLook(bound=highest, taken_at=clock)
        return pending.bound, fresh
    if pending is not None or highest is None:
        return request.after, pending
    return request.after, PendingLook(bound=highest, taken_at=clock)


def lookback_bound(request: LookRequest, clock: datetime, highest: Position | None) -> Position | None:
    """What lies above it is read again on each run: from the clock on back, or from the highest number."""
    back = request.lookback
    if isinstance(back, timedelta):
        return clock_bound(request.cursor, clock - back)
    if back is None or highest is None or not isinstance(highest.values[0], int):
        return None
    return Position.before(highest.values[0] - back)


def later_of(mark: Position | None, bound: Position | None) -> Position | None:
    """A bound never moves the mark back. Text has no order here: it comes from the highest value above the mark."""
    if bound is None:
        return mark
    if mark is None or isinstance(mark.values[0], str) or isinstance(bound.values[0], str):
        return bound
    return bound if _precedes(mark, bound) else mark


def earlier_of(one: Position | None, other: Position | None) -> Position | None:
    """None is the beginning. Not for text."""
    if one is None or other is None:
        return None
    return other if _precedes(other, one) else one


def _precedes(one: Position, other: Position) -> bool:
    """A bound on a clock is a prefix of the cursor: its first value decides, whatever kind the others are of."""
    if one.values[0] != other.values[0]:
        return one.values[:1] < other.values[:1]
    return one.is_comparable and other.is_comparable and one.precedes(other)
