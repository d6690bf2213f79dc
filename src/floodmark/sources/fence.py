"""The proof that nobody can still write below a bound. The same for every database that can list its writers; each
lists them in a file of its own.

A bound is taken first and the writers are listed then: whoever begins later takes a later clock or a higher number.
Once all of the listed have ended, whatever they wrote can be seen, and nothing below the bound can appear any more. If
they don't end in time the look stays pending in the ledger, and the next run asks again for just these writers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from floodmark.model.duration import show_duration
from floodmark.model.ledger import PendingLook
from floodmark.model.plan import Guarantee
from floodmark.model.position import Position
from floodmark.ports import LookRequest
from floodmark.sources.bound import Top, clock_bound, delayed_bound, earlier_of, later_of

MARGIN = timedelta(seconds=1)
"""A transaction's start is published a moment after it is taken."""

STEP = 0.12
"""Seconds between two listings. MySQL renews its list only when nobody has read it for a tenth of a second."""

TRIES = 3
"""Listings that are asked for where nobody can say, however short the wait."""


class Listing(Protocol):
    """Who may be writing at one moment."""

    @property
    def writers(self) -> frozenset[str]: ...

    def left(self, known: frozenset[str]) -> frozenset[str]:
        """Those of an earlier listing that may still commit, by the names that they go by now."""


ListWriters = Callable[[], "Listing | None"]
"""None when nobody can say for now."""


@dataclass(frozen=True)
class Caveat:
    """Why a look proves less than it should, and what to do about it."""

    reason: str
    fix: str = ""


OFF = Caveat("the look is switched off (fence: off)", "fence: auto")


@dataclass(frozen=True)
class Fence:
    """`list_writers` is None where the database can't list them at all: then only time helps."""

    list_writers: ListWriters | None
    caveats: tuple[Caveat, ...] = ()
    sleep: Callable[[float], object] = time.sleep

    def guarantee(self, delay: timedelta) -> Guarantee:
        if not self.caveats:
            return Guarantee("fenced")
        first = self.caveats[0]
        more = f" (and {len(self.caveats) - 1} more)" if len(self.caveats) > 1 else ""
        name = "delayed" if delay else "none"
        return Guarantee(name, show_duration(delay) if delay else "", first.reason + more, first.fix)  # type: ignore[arg-type]

    def bound(self, request: LookRequest, clock: datetime, top: Top) -> tuple[Position | None, PendingLook | None]:
        """How far the mark may move, and what stays to be proven. Where something speaks against the proof, the safety
        delay is kept as well."""
        if self.list_writers is None:
            return delayed_bound(request, clock, top)
        delay = request.delay if self.caveats else timedelta(0)
        if request.cursor.leading.kind != "timestamp":
            return self._prove(request, clock, top(), delay)
        limit, pending = self._prove(request, clock, clock_bound(request.cursor, clock - MARGIN), timedelta(0))
        if delay:
            limit = earlier_of(limit, clock_bound(request.cursor, clock - delay))
        return later_of(request.after, limit), pending

    def _prove(
        self, request: LookRequest, clock: datetime, bound: Position | None, delay: timedelta
    ) -> tuple[Position | None, PendingLook | None]:
        old = request.pending
        now, before = self._wait(request.wait, frozenset() if old is None else frozenset(old.writers))
        fresh = None
        if bound is not None and now is not None:
            if not now and not delay:
                return later_of(request.after, bound), None
            fresh = PendingLook(bound=bound, taken_at=clock, writers=tuple(sorted(now)))
        if old is not None and not before and clock - old.taken_at >= delay:
            return later_of(request.after, old.bound), fresh
        return request.after, fresh if old is None else old.but(writers=tuple(sorted(before)))

    def _wait(self, wait: timedelta, before: frozenset[str]) -> tuple[frozenset[str] | None, frozenset[str]]:
        """For today's writers, None while nobody can say who they are, and for those of the pending look."""
        assert self.list_writers is not None  # noqa: S101 - asked by `bound`
        now: frozenset[str] | None = None
        ends = time.monotonic() + wait.total_seconds()
        tried = 0
        while True:
            tried += 1
            listing = self.list_writers()
            if listing is not None:
                now = listing.writers if now is None else listing.left(now) if now else now
                before = listing.left(before) if before else before
            answered = now is not None or tried >= TRIES
            if (now is not None and not now) or (answered and time.monotonic() >= ends):
                return now, before
            self.sleep(STEP)
