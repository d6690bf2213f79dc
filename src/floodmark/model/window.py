"""Windows: the stretches that loads took, and how a long list of them is kept short."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from floodmark.model.position import Position, StoredPosition, has_passed
from floodmark.model.record import Record

KEPT_WINDOWS = 8
"""Windows kept one by one; older ones are folded, so a commit costs the same after a million of them. Each one kept
costs every commit a little (benchmarks/ledger.py), and the runs are remembered by themselves."""

KEPT_BACKFILLS = 4
"""Windows of other lanes that are kept; they say what was done again, and nothing follows from them."""

MAIN = "main"
"""The lane whose windows carry the mark. Backfills have lanes of their own, inside what is committed."""

WindowState = Literal["planned", "loaded", "committed", "verified"]


class Window(Record):
    """Half-open `[after, until)`; None is the beginning, or for a full refresh the whole table."""

    after: StoredPosition | None
    until: StoredPosition | None
    state: WindowState
    batch: str
    ordinal: int
    lane: str = MAIN
    rows: int | None = None
    at: datetime | None = None
    server: str = ""
    """Whose rows these are: the server's identity and timeline."""
    folded: int = 0
    """How many older windows this one stands for, beside itself."""

    @property
    def is_committed(self) -> bool:
        return self.state in ("committed", "verified")


def fold(windows: tuple[Window, ...], keep: int = KEPT_WINDOWS) -> tuple[Window, ...]:
    """The ledger stays small: the main lane's oldest windows are merged, other lanes' oldest are forgotten."""
    main = _merged([w for w in windows if w.lane == MAIN], keep)
    aside = _remembered([w for w in windows if w.lane != MAIN], main)
    return (*main, *aside)


def loaded_beyond(windows: Iterable[Window], end: Position | None) -> tuple[Window, ...]:
    """What still lies loaded ahead of the mark behind `end`: an append has to know, or it would load it again. Text has
    no order here, and no append that loads ahead."""
    loaded = [w for w in windows if w.state == "loaded" and w.until is not None and w.until.is_comparable]
    if end is not None and not end.is_comparable:
        return ()
    left = [w for w in loaded if not has_passed(end, w.until)]
    if not left:
        return ()
    furthest = max(left, key=lambda w: () if w.until is None else (w.until.values, w.until.beyond))
    starts_below = furthest.after is None or has_passed(end, furthest.after)
    return (furthest.but(after=end if starts_below else furthest.after, rows=None),)


def _merged(windows: list[Window], keep: int) -> list[Window]:
    """Adjoining ones, once there are more than we keep one by one. Where two don't adjoin (a gap, a change of state)
    folding goes on behind them, or a single gap would let the ledger grow for ever."""
    excess = len(windows) - keep
    if excess <= 0:
        return windows
    folded = [windows[0]]
    for window in windows[1:]:
        last = folded[-1]
        adjoins = last.until is not None and (last.until, last.state) == (window.after, window.state)
        if excess <= 0 or not adjoins:
            folded.append(window)
            continue
        rows = None if last.rows is None or window.rows is None else last.rows + window.rows
        folded[-1] = window.but(after=last.after, rows=rows, folded=last.folded + window.folded + 1)
        excess -= 1
    return folded


def _remembered(aside: list[Window], main: list[Window]) -> list[Window]:
    """One that fills a gap is kept: without it the gap would open again."""
    at = 0
    while len(aside) > KEPT_BACKFILLS and at < len(aside):
        rest = aside[:at] + aside[at + 1 :]
        if uncovered([*main, *aside]) == uncovered([*main, *rest]):
            aside = rest
        else:
            at += 1
    return aside


def uncovered(windows: Iterable[Window], start: Position | None = None) -> tuple[tuple[Position, Position], ...]:
    """Stretches between windows that none covers. Text has no order here, hence none are seen."""
    edges = [(w.after, w.until) for w in windows if w.is_committed and w.until is not None]
    if start is not None:
        edges.append((start, start))
    if not all(p is None or p.is_comparable for edge in edges for p in edge):
        return ()
    # By position, not by commit: a gap that was filled later is none.
    edges.sort(key=lambda edge: () if edge[0] is None else edge[0].values)
    found: list[tuple[Position, Position]] = []
    end: Position | None = None
    for after, until in edges:
        if end is not None and after is not None and end.precedes(after):
            found.append((end, after))
        if end is None or has_passed(until, end):
            end = until
    return tuple(found)
