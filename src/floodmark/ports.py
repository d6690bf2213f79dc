"""What the engine asks of sources, change strategies, targets, stores and sinks: nothing more."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from floodmark.model.care import Care, CareDone
from floodmark.model.event import Event
from floodmark.model.lease import Lease, Owner
from floodmark.model.ledger import Ahead, PendingLook, PipelineState
from floodmark.model.outcome import Landed, Load, RunRecord, TargetState
from floodmark.model.plan import Look
from floodmark.model.position import Position
from floodmark.model.table import Cursor, TableInfo, TableName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class LookRequest:
    """`after` is the mark. `rereads`: rows at or above it may be read again. `ahead_of_proof`: loads are idempotent, so
    rows above the bound are loaded, too."""

    cursor: Cursor
    after: Position | None
    rereads: bool
    ahead_of_proof: bool
    delay: timedelta
    fence: Literal["auto", "table", "transactions", "off"] = "auto"
    wait: timedelta = timedelta(0)
    """For writers to end."""
    lookback: timedelta | int | None = None
    pending: PendingLook | None = None
    ahead: Ahead | None = None


@dataclass(frozen=True)
class ReadRequest:
    """Rows with a cursor in `[after, until)`; no cursor reads the whole table."""

    cursor: Cursor | None
    after: Position | None
    until: Position | None
    rows: int | None
    """Estimate, from which the number of partitions follows."""
    nulls: bool = False
    """The rows without a cursor value instead."""


@dataclass(frozen=True)
class AsOf:
    """An older version of a table, by its number or as of a moment: one of the two."""

    version: int | None = None
    moment: datetime | None = None

    def __str__(self) -> str:
        if self.moment is None:
            return f"version {self.version}"
        return f"{self.moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


class Source(Protocol):
    """One table of one database. All methods but `read` work without Spark, over the database's own driver, read-only.

    Errors are SourceError (or ConfigError for what the file declares wrongly) and name table, column and what exists
    instead; `transient` where a moment later it may work. A method that failed may be called again.
    """

    def describe(self) -> TableInfo:
        """Columns and primary key; checks that table and connection are there."""

    def nulls(self, cursor: Cursor, *, checksum: bool) -> tuple[int, str]:
        """How many rows have no place in the cursor's order; `checksum` tells them apart from others, or is empty."""

    def count(self, cursor: Cursor, after: Position | None, until: Position | None) -> int:
        """Rows with a cursor in `[after, until)`."""

    def look(self, request: LookRequest) -> Look:
        """Bound first, then writers, then what is visible. Every row committed before the call is in the extent."""

    def next_cut(self, cursor: Cursor, after: Position | None, until: Position, rows: int) -> Position | None:
        """The cut that leaves about `rows` rows in `[after, cut)`, at a distinct value and never at `after` itself;
        None when no more than that are left before `until`. The order is the database's."""

    def snapshot(self) -> AbstractContextManager[str | None]:
        """Holds one view of the data for all readers, where the database can; yields its name."""

    def read(self, spark: SparkSession, request: ReadRequest, snapshot: str | None) -> DataFrame:
        """Lazy; runs when the target loads it. Filters and columns are pushed down."""

    def close(self) -> None: ...


@runtime_checkable
class TravelsInTime(Protocol):
    """A source whose table keeps its older versions."""

    def at(self, as_of: AsOf) -> Source:
        """The table as it was then, columns and all. Raises ConfigError, which names the versions that there are."""


@runtime_checkable
class ListsTables(Protocol):
    """A source whose database says which tables it has: what wildcards need."""

    def list_tables(self) -> list[TableName]:
        """Tables that may be read; no views."""


@runtime_checkable
class LooksThroughSpark(Protocol):
    """A source that has no driver but Java's: even a look starts Spark."""

    def attach(self, spark: Callable[[], SparkSession]) -> None:
        """Before anything else is asked of it."""


@runtime_checkable
class TellsGrants(Protocol):
    """A source whose database keeps rights."""

    def grants(self) -> list[str]:
        """The statements that give its user all that it needs and nothing more. Opens no connection."""


class ChangeStrategy(Protocol):
    """How changes are found. Pure."""

    def cursor(self, table: TableInfo) -> Cursor | None:
        """The declared columns, checked against the table; None when the whole table is read. Raises ConfigError."""

    def position(self, value: object, cursor: Cursor) -> Position:
        """A user's value (`start:`, `state set`) as a position. Raises ConfigError."""


class Target(Protocol):
    """One table. A load is one atomic commit that carries its head."""

    @property
    def resource(self) -> str:
        """Names the table for the lease; the same for everyone who loads into it."""

    def inspect(self, *, deep: bool = False) -> TargetState:
        """Without Spark. `deep` lists every commit that the history still has, not just the newest. Raises TargetError
        when the target can't be reached."""

    def load(self, spark: SparkSession, batch: DataFrame, load: Load) -> Landed | None:
        """Commits data and head together; None when the target took nothing, because this ordinal is spent. Any
        exception leaves the outcome open: ask `find`."""

    def find(self, batch_id: str) -> Landed | None:
        """The commit with this batch id in the *current* history."""


@runtime_checkable
class PreparesLoads(Protocol):
    """A target that can do some of a load's work before there is a batch."""

    def prepare(self, spark: SparkSession) -> None:
        """In a thread of its own, while the source is read. Changes nothing, and a load does without it."""


@runtime_checkable
class Maintains(Protocol):
    """A target whose table wants care from time to time: `TargetState.condition` tells when it had some."""

    def small_files(self) -> int:
        """By how many a compaction could make the table's files fewer. Without Spark."""

    def care(self, spark: SparkSession, wanted: Care) -> CareDone:
        """One step, in commits that change no row and count as no load. Under the lease, beside writers that know of
        none: where one of them is in the way it raises, and the table is as it was."""


class StateStore(Protocol):
    """Keeps one PipelineState per pipeline."""

    def get(self, pipeline: str) -> PipelineState | None: ...

    def save(self, state: PipelineState, lease: Lease | None = None) -> PipelineState:
        """Compare-and-swap: stores only over `state.revision` (0: not there yet) and only while `lease` is current.
        Returns the state with its new revision. Raises StateConflict or LeaseLost, and then nothing was changed."""

    def delete(self, pipeline: str) -> bool:
        """True if it was there."""

    def list_pipelines(self) -> list[str]: ...

    def close(self) -> None: ...


@runtime_checkable
class SupportsLeases(Protocol):
    """A store that can keep other runners out before they start."""

    def acquire(self, resource: str, owner: Owner, expected: Lease | None = None) -> Lease:
        """Takes a free or released lease; `expected` takes over exactly that stale one. Raises the epoch.
        Raises LeaseHeld when somebody else holds it, or got there first."""

    def holder(self, resource: str) -> Lease | None:
        """Who holds it now; None when free."""

    def beat(self, lease: Lease) -> Lease:
        """Raises the counter. Raises LeaseLost when the epoch has moved on."""

    def release(self, lease: Lease) -> None:
        """No effect when it is no longer ours."""


@runtime_checkable
class SupportsHistory(Protocol):
    """A store that remembers runs."""

    def record_run(self, record: RunRecord) -> None: ...

    def runs(self, pipeline: str, limit: int = 20) -> list[RunRecord]:
        """Newest first."""


@runtime_checkable
class HandsBack(Protocol):
    """A store that keeps nothing itself: the caller does, from one run to the next."""

    def to_keep(self) -> dict[str, str]:
        """Variables and their values for the next run; empty when nothing has changed."""


class EventSink(Protocol):
    def emit(self, event: Event) -> None: ...
