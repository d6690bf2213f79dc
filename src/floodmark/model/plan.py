"""What the look saw and what the run will do about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from floodmark.model.ledger import Ahead, PendingLook
from floodmark.model.position import Position


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


@dataclass(frozen=True)
class Extent:
    """The rows at or above the mark, as one query on the source saw them."""

    rows: int
    until: Position | None
    """Just beyond the highest value; None when there are no rows."""
    checksum: str
    """Of key and cursor, so that a second look can tell whether anything changed."""


@dataclass(frozen=True)
class Look:
    """Taken in this order: bound, then writers, then extent (a row that appears in between is only read once more)."""

    clock: datetime
    """The source's own."""
    bound: Position | None
    """Nothing below it can be written any more once all `writers` have ended; None when that can't be said yet."""
    writers: tuple[str, ...]
    extent: Extent
    rows_below_bound: int
    guarantee: Guarantee
    server: str = ""
    settled: bool = True
    """False when some rows are so young that a second change may carry the same cursor value."""


@dataclass(frozen=True)
class Slice:
    """One read and one commit. Reads `[after, until)`; once it has landed the mark stands at `mark`."""

    after: Position | None
    until: Position | None
    mark: Position | None
    rows: int | None
    """Estimate; None when unknown."""
    last: bool = True
    full: bool = False
    replaces: bool = False
    ahead: Ahead | None = None


@dataclass(frozen=True)
class RunPlan:
    """`until` is where this run stops reading, `proven` how far the mark may move."""

    pipeline: str
    after: Position | None
    proven: Position | None
    until: Position | None
    rows: int | None
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
