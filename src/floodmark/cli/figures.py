"""Numbers, times and positions as people read them. Unknown is a dash, never a zero."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from floodmark.model.outcome import Rows
    from floodmark.model.position import Position

UNKNOWN = "–"


def show_count(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def show_rows(number: int | None) -> str:
    return f"{show_count(number)} {'row' if number == 1 else 'rows'}"


def show_seconds(seconds: float | None) -> str:
    if seconds is None:
        return UNKNOWN
    if seconds < 0.01:
        return "<0.01 s"
    if seconds < 0.1:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return show_span(timedelta(seconds=seconds))


def show_span(span: timedelta | None) -> str:
    """The two largest units: 41s, 3m 12s, 1d 10h."""
    if span is None:
        return UNKNOWN
    left = max(0, round(span.total_seconds()))
    shown: list[tuple[int, str]] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or shown:
            shown.append((count, unit))
    return " ".join(f"{count}{unit}" for count, unit in shown[:2] if count) or "0s"


def show_position(position: Position | None) -> str:
    return UNKNOWN if position is None else str(position)


def show_moment(moment: datetime | None, now: datetime | None = None, *, seconds: bool = False) -> str:
    """In UTC like every mark beside it; the date only where it is not today's."""
    if moment is None:
        return UNKNOWN
    here, today = moment.astimezone(UTC), (now or datetime.now(UTC)).astimezone(UTC).date()
    time = "%H:%M:%S" if seconds else "%H:%M"
    return here.strftime(time if here.date() == today else f"%Y-%m-%d {time}")


def loaded_rows(rows: Rows, *, nothing_new: bool = False) -> int | None:
    """`Rows.loaded` takes an unknown count for zero; for people it stays unknown."""
    if rows.inserted is None and rows.updated is None:
        return 0 if nothing_new else None
    return rows.loaded
