"""What the look saw and what the run will do about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from floodmark.model.ledger import Ahead, NullsSeen, PendingLook, ServerSeen
from floodmark.model.position import Position


@dataclass(frozen=True)
class Work:
    """About how much lies ahead of a Spark: what it is set up for."""

    rows: int | None = None
    """To be read. None when nobody has counted them."""
    beside: int = 0
    """In the table that they are merged into."""

    def is_below(self, limit: int) -> bool:
        return self.rows is not None and self.rows <= limit


@dataclass(frozen=True)
class Guarantee:
    """How sure the bound is: `fenced`, `exact`, `delayed`, `none`; weaker than fenced says why and what to change."""

    name: Literal["fenced", "log", "exact", "delayed", "none"]
    detail: str = ""
    """Shown behind the name, e.g. the delay."""
    reason: str = ""
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.detail}".rstrip()

    @property
    def caveat(self) -> str:
        return ": ".join(filter(None, (self.reason, self.fix)))


@dataclass(frozen=True)
class Look:
    """What the source showed: the bound first, then who may still write below it, then the rows (one that appears in
    between is only read once more)."""

    clock: datetime
    """The source's own."""
    proven: Position | None
    """How far the mark may move: nothing below can be written any more, and no lookback wants it read again. At least
    the mark itself."""
    settled: Position | None
    """Beyond the last row below which nothing can be written any more; further than `proven` with a lookback."""
    pending: PendingLook | None
    """A bound still to be proven, for the ledger."""
    rows: int
    """Visible at or above the mark."""
    rows_proven: int
    """Those of them below `proven`."""
    rows_settled: int
    """Those of them below `settled`."""
    until: Position | None
    """Just beyond the highest value; None when there are no rows."""
    guarantee: Guarantee
    unchanged: bool = False
    """The rows above the mark are just those that the ledger knows as loaded ahead."""
    ahead: Ahead | None = None
    """Recognises the rows at or above `proven` at the next look."""
    known: Ahead | None = None
    """Rows at or above the mark that are just as the last load took them; others lie beyond."""
    server: ServerSeen | None = None
    fell_to: Position | None = None
    """The highest value there is, where all of them lie below the mark."""


@dataclass(frozen=True)
class Slice:
    """One read and one commit. Reads `[after, until)`; once it has landed the mark stands at `mark`."""

    after: Position | None
    until: Position | None
    mark: Position | None
    rows: int | None
    """Estimate; None when unknown."""
    full: bool = False
    replaces: bool = False
    ahead: Ahead | None = None
    known: Position | None = None
    """Up to here the target has the rows already, as they are: they are not read."""


@dataclass(frozen=True)
class RunPlan:
    """`until` is where this run stops reading, `proven` how far the mark may move."""

    pipeline: str
    after: Position | None
    proven: Position | None
    until: Position | None
    rows: int | None
    rows_ahead: int
    """Of these, rows above `proven`: loaded ahead of the mark."""
    rows_waiting: int
    """Visible rows that append may not load yet."""
    slices: int
    guarantee: Guarantee
    pending: PendingLook | None = None
    ahead: Ahead | None = None
    full: bool = False
    nothing_new: bool = False
    first: bool = False
    clock: datetime | None = None
    server: ServerSeen | None = None
    nulls: NullsSeen | None = None
    known: Position | None = None
    """Up to here the target has the rows already, as they are."""
    load_nulls: bool = False
    """Rows without a cursor value are to be loaded, beside the window."""
