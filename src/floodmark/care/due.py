"""Which care a table wants now. Pure, and decided by what was read for other reasons."""

from __future__ import annotations

from datetime import datetime, timedelta

from floodmark.model.care import Condition, Step
from floodmark.model.outcome import TargetState
from floodmark.model.target import MaintenanceSpec

MANY = 30
"""Files that a compaction has to save, or it is not worth its commit."""


def due(wanted: MaintenanceSpec, seen: TargetState, now: datetime) -> tuple[Step, ...]:
    """After a run that has loaded something, in the order in which it is done. Whether a compaction is worth it is for
    the files to say."""
    condition = seen.condition
    if not seen.exists:
        # A first load that leaves many small files makes them good itself: a small run would pay for all of them.
        return ("compact",) if wanted.compact is not None else ()
    if condition is None:
        return ()
    steps: list[Step] = []
    kept_at = condition.made_at if seen.kept is None else seen.kept.at
    if _has_passed(kept_at, condition.keep_within, now):
        steps.append("keep")
    if _has_passed(condition.compacted_at, wanted.compact, now):
        steps.append("compact")
    if _may_vacuum(wanted, condition) and _has_passed(condition.vacuumed_at or condition.made_at, wanted.vacuum, now):
        steps.append("vacuum")
    return tuple(steps)


def head_in_danger(seen: TargetState, now: datetime) -> bool:
    """Nothing was loaded, and the newest head is so old that the history may forget it: worth a Spark of its own."""
    condition = seen.condition
    if condition is None or not seen.landed:
        return False
    newest = seen.landed[0].head
    is_kept = seen.kept is not None and seen.kept.head.ordinal >= newest.ordinal
    return not is_kept and _has_passed(newest.at, condition.keep_within, now)


def _may_vacuum(wanted: MaintenanceSpec, condition: Condition) -> bool:
    """What it removes is gone: not from a table with another owner who has not been asked."""
    return condition.is_ours or wanted.vacuum_is_declared


def _has_passed(last: datetime | None, interval: timedelta | None, now: datetime) -> bool:
    return interval is not None and (last is None or now - last >= interval)
