"""Durations as people write them: 500ms, 2s, 5m, 1h30m, 7d."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")


def parse_duration(text: object) -> timedelta:
    if isinstance(text, timedelta):
        return text
    if isinstance(text, int) and not isinstance(text, bool) and text == 0:
        return timedelta(0)
    if not isinstance(text, str) or not _WHOLE.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is not a duration: write it like 500ms, 2s, 5m, 1h30m or 7d")
    return timedelta(seconds=sum(float(n) * _SECONDS[unit] for n, unit in _PART.findall(text)))


def show_duration(duration: timedelta) -> str:
    seconds = duration.total_seconds()
    if seconds < 1:
        return f"{round(seconds * 1000)}ms" if seconds else "0s"
    shown = []
    for unit in ("d", "h", "m", "s"):
        count, seconds = divmod(seconds, _SECONDS[unit])
        if count:
            shown.append(f"{count:.0f}{unit}")
    return "".join(shown[:2]) or "0s"


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(show_duration),
    WithJsonSchema({"type": ["string", "integer"], "examples": ["2s", "5m", "1h30m"]}),
]


def parse_interval(text: object) -> timedelta | None:
    """How often something is done at most; None is never."""
    # YAML 1.1 reads a bare `off` as false.
    return None if text is False or text == "off" else parse_duration(text)


Interval = Annotated[
    timedelta | None,
    BeforeValidator(parse_interval),
    PlainSerializer(lambda interval: "off" if interval is None else show_duration(interval)),
    WithJsonSchema({"type": ["string", "integer"], "examples": ["1h", "7d", "off"]}),
]
