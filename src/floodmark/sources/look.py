"""The look, as every database takes it: each brings its clock, its bound and its way to run a statement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from floodmark.model.ledger import Ahead, PendingLook
from floodmark.model.plan import Guarantee, Look
from floodmark.model.position import Position
from floodmark.ports import LookRequest
from floodmark.sources.bound import young_from
from floodmark.sources.sql import CursorSql, Fetch

Bound = Callable[[Position | None], tuple[Position | None, PendingLook | None]]
"""From the cut beyond the highest visible value: how far the mark may move, and what stays to be proven."""


@dataclass(frozen=True)
class Probe:
    """One table, seen through its own driver."""

    sql: CursorSql
    fetch: Fetch
    number: Callable[[str], int]
    checksum: Callable[[str], str]
    """Of key and cursor over the rows of a WHERE."""

    def look(self, request: LookRequest, clock: datetime, bound: Bound, guarantee: Guarantee) -> Look:
        values = self.fetch(self.sql.highest(request.after))
        highest = None if values is None else Position.after(*values)
        proven, pending = bound(highest)
        if highest is None or (proven is not None and proven.is_comparable and highest.precedes(proven)):
            # No further than the rows themselves: a value that an application fills in late is then still found.
            proven = request.after if highest is None else highest
        rows = 0 if values is None else self.number(self.sql.count(request.after, None))
        young = young_from(request.cursor, clock)
        leading = None if values is None else values[0]
        fresh = young is not None and isinstance(leading, datetime) and leading >= young
        return Look(
            clock=clock,
            proven=proven,
            pending=pending,
            rows=rows,
            rows_proven=0 if proven is None or not rows else self.number(self.sql.count(request.after, proven)),
            until=highest,
            guarantee=guarantee,
            unchanged=self._is_unchanged(request, rows),
            ahead=None if fresh else self._memo(proven),
        )

    def _is_unchanged(self, request: LookRequest, rows: int) -> bool:
        if request.ahead is None or rows != request.ahead.count:
            return rows == 0
        return self.checksum(self.sql.bounds(request.after, None)) == request.ahead.checksum

    def _memo(self, proven: Position | None) -> Ahead:
        return Ahead(
            count=self.number(self.sql.count(proven, None)), checksum=self.checksum(self.sql.bounds(proven, None))
        )
