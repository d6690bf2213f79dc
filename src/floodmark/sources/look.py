"""The look, as every database takes it: each brings its clock, its bound and its way to run a statement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from floodmark.model.ledger import Ahead, PendingLook
from floodmark.model.plan import Guarantee, Look
from floodmark.model.position import Position
from floodmark.ports import LookRequest
from floodmark.sources.sql import CursorSql, Fetch

MOST_TIES = 10_000
"""Rows on the highest cursor value that are looked at again on each run; more of them would make quiet runs dear."""

Bound = Callable[[Position | None], tuple[Position | None, PendingLook | None]]
"""From the cut beyond the highest visible value: how far the mark may move, and what stays to be proven."""


@dataclass(frozen=True)
class Probe:
    """One table, seen through its own driver."""

    sql: CursorSql
    fetch: Fetch
    number: Callable[[str], int]
    checksum: Callable[[str], str]
    """Of whole rows, over those of a WHERE."""

    def look(self, request: LookRequest, clock: datetime, bound: Bound, guarantee: Guarantee) -> Look:
        values = self.fetch(self.sql.highest(request.after, None))
        highest = None if values is None else Position.after(*values)
        limit, pending = bound(highest)
        proven = self._mark(request, limit)
        rows = 0 if values is None else self.number(self.sql.count(request.after, None))
        return Look(
            clock=clock,
            proven=proven,
            pending=pending,
            rows=rows,
            rows_proven=0 if proven is None or not rows else self.number(self.sql.count(request.after, proven)),
            until=highest,
            guarantee=guarantee,
            unchanged=self._is_unchanged(request, rows),
            ahead=self._memo(proven) if request.rereads else None,
        )

    def _mark(self, request: LookRequest, limit: Position | None) -> Position | None:
        """The mark moves no further than the rows below the bound do: a value that an application fills in late, from
        its own clock, is then still found. Where rows may be read twice it stays *at* the highest of them rather than
        beyond it, for a row that changes again within the same tick."""
        values = None if limit is None else self.fetch(self.sql.highest(request.after, limit))
        if values is None:
            return request.after
        if not request.rereads:
            return Position.after(*values)
        within = request.after is not None and request.after.values[0] == values[0]
        floor = request.after if within else Position.before(values[0])
        ties = self.number(self.sql.count(floor, limit))
        return floor if ties <= MOST_TIES else Position.after(*values)

    def _is_unchanged(self, request: LookRequest, rows: int) -> bool:
        if rows == 0 or request.ahead is None or rows != request.ahead.count:
            return rows == 0
        return self.checksum(self.sql.bounds(request.after, None)) == request.ahead.checksum

    def _memo(self, proven: Position | None) -> Ahead:
        where = self.sql.bounds(proven, None)
        return Ahead(count=self.number(self.sql.count(proven, None)), checksum=self.checksum(where))
