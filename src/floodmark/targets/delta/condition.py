"""When a Delta table was last looked after, and how long its log is kept, as the log tells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

from floodmark.model.care import Condition
from floodmark.targets.delta.log import OURS, DeltaLog

LOG_KEPT = timedelta(days=30)
_UNITS = {"millisecond": 1e-3, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0}
_INTERVAL = re.compile(rf"(\d+)\s+({'|'.join(_UNITS)})s?\b", re.IGNORECASE)


def condition(log: DeltaLog) -> Condition:
    return Condition(
        made_at=log.made_at,
        compacted_at=log.cared_at("compact"),
        vacuumed_at=log.cared_at("vacuum"),
        keep_within=interval(log.properties, "delta.logRetentionDuration", LOG_KEPT) / 2,
        is_ours=OURS in log.properties,
    )


def interval(properties: Mapping[str, str], name: str, otherwise: timedelta) -> timedelta:
    """As Delta writes them: `interval 30 days`."""
    parts = _INTERVAL.findall(properties.get(name, ""))
    return timedelta(seconds=sum(int(n) * _UNITS[unit.lower()] for n, unit in parts)) if parts else otherwise
