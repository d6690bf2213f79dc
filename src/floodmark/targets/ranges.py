"""A range of the cursor, in a table that holds it already."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from floodmark.errors import Refused
from floodmark.model.outcome import Load


def check_range(load: Load, *, has_order: bool) -> None:
    """Raises Refused where the table can't tell what of it lies in the range."""
    if load.cursor and has_order:
        return
    trouble = "only the source knows the order of its cursor" if load.cursor else "it has no cursor column"
    raise Refused(
        f"the range is in the table already, and it can't be replaced there: {trouble}",
        hint="`--full-refresh` loads the whole table again in one commit",
    )


def wall_time(moment: datetime, load: Load) -> datetime:
    """What a column without a zone holds."""
    return moment.astimezone(ZoneInfo(load.timezone) if load.timezone else UTC).replace(tzinfo=None)


def compared(ours: Sequence[str], sign: str, theirs: Sequence[str]) -> str:
    """Spelt out, since not everybody compares rows: the first column that differs decides."""
    ways = []
    for place in range(len(ours)):
        parts = [f"{ours[i]} = {theirs[i]}" for i in range(place)]
        own = sign if place == len(ours) - 1 else sign[0]
        ways.append(" AND ".join([*parts, f"{ours[place]} {own} {theirs[place]}"]))
    return f"({' OR '.join(f'({way})' for way in ways)})"
