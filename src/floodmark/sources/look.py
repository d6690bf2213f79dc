"""The look, as every database takes it: each brings its clock, its bound and its way to run a statement."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime

from floodmark.model.ledger import Ahead, PendingLook, ServerSeen
from floodmark.model.plan import Guarantee, Look
from floodmark.model.position import Position, Scalar
from floodmark.ports import LookRequest
from floodmark.sources.bound import Top, earlier_of, lookback_bound
from floodmark.sources.sql import CursorSql, Fetch

MOST_TIES = 10_000
"""Rows on the highest cursor value that are looked at again on each run; more of them would make quiet runs dear."""

Bound = Callable[[Top], tuple[Position | None, PendingLook | None]]
"""From the cut beyond the highest visible value: how far the mark may move, and what stays to be proven."""

View = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Probe:
    """One table, seen through its own driver."""

    sql: CursorSql
    fetch: Fetch
    number: Callable[[str], int]
    checksum: Callable[[str], str]
    """Of whole rows, over those of a WHERE."""
    view: View = nullcontext
    """All statements inside it see the rows of one moment."""

    def look(
        self,
        request: LookRequest,
        clock: datetime,
        bound: Bound,
        guarantee: Guarantee,
        server: ServerSeen | None = None,
    ) -> Look:
        """The bound first, and whoever has to end before it holds; only then the rows, all in one view. What these
        writers left behind is in it, so a mark that moves to the bound has seen everything below."""
        limit, pending = bound(lambda: self._top(request))
        with self.view():
            top = self._top(request)
            values = None if limit is None else self.fetch(self.sql.highest(request.after, limit))
            settled = request.after if values is None else Position.after(*values)
            # Held back by the lookback: what lies above is read again.
            back = lookback_bound(request, clock, top)
            proven = self._mark(request, limit, values) if back is None else self._held_back(request, limit, back)
            edge = None if request.ahead_of_proof else settled
            rows = 0 if top is None else self.number(self.sql.count(request.after, None))
            unchanged = self._is_unchanged(request, edge, rows)
            return Look(
                clock=clock,
                proven=proven,
                settled=settled,
                pending=pending,
                rows=rows,
                rows_proven=self._count(request.after, proven) if rows else 0,
                rows_settled=self._count(request.after, settled) if rows else 0,
                until=top,
                guarantee=guarantee,
                unchanged=unchanged,
                known=None if unchanged else self._known(request),
                ahead=self._memo(proven, edge, top) if request.rereads else None,
                server=server,
                fell_to=self._fallen(request) if rows == 0 else None,
            )

    def _count(self, after: Position | None, until: Position | None) -> int:
        """None is where nothing has been proven yet, not the end."""
        return 0 if until is None or until == after else self.number(self.sql.count(after, until))

    def _top(self, request: LookRequest) -> Position | None:
        values = self.fetch(self.sql.highest(request.after, None))
        return None if values is None else Position.after(*values)

    def _fallen(self, request: LookRequest) -> Position | None:
        values = None if request.after is None else self.fetch(self.sql.highest(None, None))
        return None if values is None or Position.after(*values) == request.after else Position.before(*values)

    def _held_back(self, request: LookRequest, limit: Position | None, back: Position) -> Position | None:
        lower = earlier_of(limit, back)
        values = None if lower is None else self.fetch(self.sql.highest(request.after, lower))
        return self._mark(request, lower, values)

    def _mark(self, request: LookRequest, limit: Position | None, values: tuple[Scalar, ...] | None) -> Position | None:
        """The mark moves no further than the rows below the bound do: a value that an application fills in late, from
        its own clock, is then still found. Where rows may be read twice it stays *at* the highest of them rather than
        beyond it, for a row that changes again within the same tick."""
        if values is None:
            return request.after
        if not request.rereads:
            return Position.after(*values)
        within = request.after is not None and request.after.values[0] == values[0]
        floor = request.after if within else Position.before(values[0])
        ties = self.number(self.sql.count(floor, limit))
        return floor if ties <= MOST_TIES else Position.after(*values)

    def _is_unchanged(self, request: LookRequest, edge: Position | None, rows: int) -> bool:
        """What a load would read is just what the last one did."""
        if not request.ahead_of_proof:
            rows = self._count(request.after, edge) if rows else 0
        if rows == 0 or request.ahead is None or rows != request.ahead.count:
            return rows == 0
        return self.checksum(self.sql.bounds(request.after, edge)) == request.ahead.checksum

    def _known(self, request: LookRequest) -> Ahead | None:
        """What the last load took above the mark, if it is still the same; of many rows that would be dear to ask."""
        ahead = request.ahead
        if ahead is None or ahead.until is None or not 0 < ahead.count <= MOST_TIES:
            return None
        if self._count(request.after, ahead.until) != ahead.count:
            return None
        return ahead if self.checksum(self.sql.bounds(request.after, ahead.until)) == ahead.checksum else None

    def _memo(self, proven: Position | None, edge: Position | None, top: Position | None) -> Ahead:
        count, where = self.number(self.sql.count(proven, edge)), self.sql.bounds(proven, edge)
        return Ahead(count=count, checksum=self.checksum(where), until=top if edge is None else edge)
