"""What came of it: heads in the target, results of runs, records in the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import Field

from floodmark.model.care import Condition
from floodmark.model.ledger import Ahead, Intent, PipelineState
from floodmark.model.position import Position, StoredPosition
from floodmark.model.record import Record
from floodmark.model.target import Mode
from floodmark.model.window import MAIN


class Head(Record):
    """Carried by every commit on a target: the target is the truth, and this is how it says what it holds."""

    floodmark: int = 1
    pipeline: str
    lane: str
    ordinal: int
    batch: str
    start: StoredPosition | None
    after: StoredPosition | None
    until: StoredPosition | None
    mark: StoredPosition | None
    full: bool = False
    epoch: int
    run: str
    at: datetime
    ahead: Ahead | None = None
    server: str = ""
    """Whose rows these are: the source's server and timeline."""
    """Recognises the rows that were loaded above the mark, for a state that is rebuilt from here."""
    identity: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True)
class Rows:
    """None is unknown, never zero."""

    read: int | None = None
    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None

    @property
    def loaded(self) -> int:
        return (self.inserted or 0) + (self.updated or 0)

    def plus(self, other: Rows) -> Rows:
        def add(a: int | None, b: int | None) -> int | None:
            return b if a is None else a if b is None else a + b

        return Rows(
            add(self.read, other.read),
            add(self.inserted, other.inserted),
            add(self.updated, other.updated),
            add(self.deleted, other.deleted),
        )


@dataclass(frozen=True)
class Landed:
    """A commit that is in the target's current history."""

    head: Head
    version: int
    table_id: str
    rows: Rows
    notices: tuple[str, ...] = ()
    """What the load changed beside rows: new or wider columns."""


class Kept(Record):
    """A pipeline's newest head and what its ledger had come to, kept in the table itself where no expiry of its history
    reaches: what earlier heads told is in it, so that later ones can be settled on top."""

    table_id: str
    """A copy of the table is another table: rows may have come to it since."""
    seen: int
    """The table's version when this was taken: what happened up to it is known here."""
    at: datetime
    version: int
    """Of the head's own commit."""
    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None
    head: Head
    state: PipelineState

    def to_landed(self) -> Landed:
        rows = Rows(None, self.inserted, self.updated, self.deleted)
        return Landed(self.head, self.version, self.table_id, rows)


@dataclass(frozen=True)
class TargetState:
    """What the target says of itself, before anything is read."""

    exists: bool
    table_id: str | None = None
    version: int | None = None
    landed: tuple[Landed, ...] = ()
    """This pipeline's commits in the current history, newest first; commits that a restore undid are not in it."""
    top_ordinal: int = 0
    """The highest ordinal that the target will ever skip, undone commits included."""
    wiped_by: str | None = None
    """A foreign commit that emptied or replaced the table after the newest head."""
    has_rows: bool = False
    columns: tuple[str, ...] = ()
    """Empty where a load makes the table anew."""
    partitions: tuple[str, ...] | None = None
    """What it is partitioned by; None where it has no such thing."""
    kept: Kept | None = None
    """Of this pipeline, where the table keeps it."""
    condition: Condition | None = None
    """Of a table that wants care from time to time."""


@dataclass(frozen=True)
class Load:
    """One batch on its way into the target."""

    intent: Intent
    head: Head
    mode: Mode
    keys: tuple[str, ...]
    cursor: tuple[str, ...]
    """Decides which row wins; empty where there is no sequence."""
    timezone: str | None = None
    """The zone that zone-less cursor values are in."""
    fallback: str | None = None
    """The column that stands in where the first one of the cursor is NULL."""
    later_wins: bool = False
    """What the table holds of this stretch was loaded ahead of proof: the source's last word counts."""
    only_new: bool = False
    """An append that leaves out rows whose keys are there already."""
    rows: int | None = None
    """About how many there are, where the look has counted them."""
    beyond: bool = False
    """All that was loaded before is older than any of these rows."""


@dataclass(frozen=True)
class RunResult:
    pipeline: str
    run_id: str
    started_at: datetime
    success: bool
    lane: str = MAIN
    """`main`, or the backfill that it was."""
    rows: Rows = Rows()
    window: tuple[Position | None, Position | None] = (None, None)
    mark: Position | None = None
    slices: int = 0
    complete: bool = True
    """False when slices were left for the next run."""
    nothing_new: bool = False
    rows_waiting: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    """By stage."""
    errors: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    guarantee: str = ""
    caveat: str = ""
    """Why the guarantee is weaker than it could be, and what to do about it."""
    version: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    failure: Exception | None = field(default=None, repr=False, compare=False)
    """The error itself, with its fields and hint; `errors` holds its words."""

    @property
    def rows_loaded(self) -> int:
        return self.rows.loaded

    @property
    def total_seconds(self) -> float:
        return sum(self.seconds.values())

    def plus(self, later: RunResult) -> RunResult:
        """The totals of two runs of one pipeline; the later one says how it ended."""
        stages = {**self.seconds}
        for stage, seconds in later.seconds.items():
            stages[stage] = stages.get(stage, 0.0) + seconds
        return replace(
            later,
            run_id=self.run_id,
            started_at=self.started_at,
            rows=self.rows.plus(later.rows),
            window=(self.window[0], later.window[1]),
            slices=self.slices + later.slices,
            nothing_new=self.nothing_new and later.nothing_new,
            seconds=stages,
            notices=(*self.notices, *later.notices),
            version=later.version if later.version is not None else self.version,
        )


class RunRecord(Record):
    """One line of the history."""

    run_id: str
    pipeline: str
    lane: str = MAIN
    started_at: datetime
    seconds: float
    success: bool
    stopped: bool = False
    """Somebody asked it to end."""
    nothing_new: bool = False
    rows_read: int | None = None
    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    rows_waiting: int = 0
    """Seen and not loaded yet: nobody can say that all before them are there."""
    slices: int = 0
    after: StoredPosition | None = None
    until: StoredPosition | None = None
    mark: StoredPosition | None = None
    error: str | None = None
    version: int | None = None
    guarantee: str = ""
    caveat: str = ""
    stages: dict[str, float] = Field(default_factory=dict)


Health = Literal["ok", "failed", "stopped", "never ran", "running"]


@dataclass(frozen=True)
class PipelineStatus:
    """One line of `status`. None is unknown."""

    pipeline: str
    health: Health
    mark: Position | None
    lag: timedelta | None
    last_run: RunRecord | None
    rows_total: int
    gaps: int | None
    guarantee: str
    intent: bool
    """A load was begun and its outcome is not recorded: the next run finds out."""
    notes: tuple[str, ...] = ()
