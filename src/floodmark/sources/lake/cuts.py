"""Where a range is cut into slices, for sources without an index: once, from a sample of the cursor's values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

from floodmark.model.position import Position, Scalar

Values = tuple[Scalar, ...]
Sample = Callable[[float], Sequence[Values]]
"""About that share of the range's values, in their order."""

EXACT = 10_000
"""Rows that are all looked at."""
PER_SLICE, MOST = 100, 100_000
"""Of larger ranges: a slice is then about as large as wanted, and no more than that is ever held here."""


class Cuts:
    """One pass over the range yields all its cuts: to find each by itself would read the rest of it again and again.
    Rows that are written meanwhile make a slice larger, never wrong."""

    def __init__(self) -> None:
        self._known: dict[Position | None, Position | None] = {}
        self._of: tuple[Position, int] | None = None

    def next(
        self, after: Position | None, until: Position, rows: int, count: Callable[[], int], sample: Sample
    ) -> Position | None:
        if self._of != (until, rows) or after not in self._known:
            self._of = (until, rows)
            cuts = _cuts(rows, count(), sample)
            self._known = dict(zip([after, *cuts], [*cuts, None], strict=True))
        return self._known[after]


def _cuts(rows: int, count: int, sample: Sample) -> list[Position]:
    if count <= rows:
        return []
    wanted = count if count <= EXACT else min(MOST, max(EXACT, PER_SLICE * ceil(count / rows)))
    values = sample(wanted / count)
    step = rows if wanted == count else rows * len(values) / count
    found: list[Position] = []
    first = 0
    while (place := round(first + step)) < len(values):
        # Ties are kept together: where they fill the slice, the cut moves on to the next value.
        while place < len(values) and values[place] == values[first]:
            place += 1
        if place == len(values):
            break
        while values[place - 1] == values[place]:
            place -= 1
        found.append(Position.before(*values[place]))
        first = place
    return found
