"""A target and stores in memory that keep to the rules of the real ones: Delta's silent skip of a spent ordinal, a
save that compares and swaps. A process reaches them through ports that it can be stopped at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.writers import Batch, Row, Step, number_of

from floodmark.errors import LeaseHeld, StateError
from floodmark.model.lease import Lease, Owner
from floodmark.model.ledger import Intent, PipelineState
from floodmark.model.outcome import Landed, Load, Rows, TargetState
from floodmark.ports import StateStore
from floodmark.state.document import DocumentStore, Edit

RECENT = 4
"""Commits that a glance at the history shows. Delta's are fifty; fewer are seen to be enough the sooner."""

Trouble = str
"""`before` or `after`: when the next load or save fails, seen from its commit."""


@dataclass(frozen=True)
class Commit:
    landed: Landed
    rows: tuple[Row, ...]
    """What the table held then."""


@dataclass
class MemoryTarget:
    commits: list[Commit] = field(default_factory=list)
    """Those that led to the table as it is, oldest first."""
    top: int = 0
    """The highest ordinal ever, also of commits that were undone."""
    trouble: Trouble | None = None

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.commits[-1].rows if self.commits else ()

    def inspect(self, *, deep: bool = False) -> TargetState:
        landed = tuple(commit.landed for commit in reversed(self.commits))
        return TargetState(
            exists=self.top > 0,
            table_id="table" if self.top else None,
            version=self.top,
            landed=landed if deep else landed[:RECENT],
            top_ordinal=self.top,
            has_rows=bool(self.rows),
        )

    def find(self, batch_id: str) -> Landed | None:
        return next((found for found in self.inspect().landed if found.head.batch == batch_id), None)

    def load(self, batch: Batch, load: Load) -> Landed | None:
        trouble, self.trouble = self.trouble, None
        if trouble == "before":
            raise RuntimeError("connection reset, before the commit")
        if load.head.ordinal > self.top:
            held, rows = self._loaded(batch, load)
            landed = Landed(load.head, load.head.ordinal, "table", rows)
            self.top = load.head.ordinal
            self.commits.append(Commit(landed, held))
        if trouble == "after":
            raise RuntimeError("connection reset, after the commit")
        return self.find(load.intent.batch)

    def _loaded(self, batch: Batch, load: Load) -> tuple[tuple[Row, ...], Rows]:
        new = len(batch.rows)
        if load.intent.full:
            return batch.rows, Rows(new, new, 0, 0)
        if load.mode == "upsert":
            return self._merged(batch)
        kept = self.rows
        if load.intent.replaces:
            assert all(_holds(load.intent, row) for row in batch.rows)
            kept = tuple(row for row in kept if not _holds(load.intent, row))
        return (*kept, *batch.rows), Rows(new, new, 0, len(self.rows) - len(kept))

    def _merged(self, batch: Batch) -> tuple[tuple[Row, ...], Rows]:
        """The higher cursor wins; at equal ones the later read, if it says anything new."""
        held = {row.key: row for row in self.rows}
        assert len(held) == len(self.rows)
        inserted = [row for row in batch.rows if row.key not in held]
        updated = [r for r in batch.rows if r.key in held and r.value >= held[r.key].value and r != held[r.key]]
        held.update((row.key, row) for row in (*inserted, *updated))
        return tuple(held.values()), Rows(len(batch.rows), len(inserted), len(updated), 0)

    def take_back(self, count: int) -> None:
        """RESTORE to an older version. Its ordinals stay spent."""
        del self.commits[len(self.commits) - count :]


def _holds(intent: Intent, row: Row) -> bool:
    after = intent.after is None or row.value >= number_of(intent.after)
    return after and (intent.until is None or row.value < number_of(intent.until))


@dataclass(frozen=True)
class TargetPort:
    target: MemoryTarget
    step: Step
    resource: str = "memory:t"

    def inspect(self, *, deep: bool = False) -> TargetState:
        self.step()
        return self.target.inspect(deep=deep)

    def load(self, spark: Any, batch: Any, load: Load) -> Landed | None:  # noqa: ARG002 - there is no Spark
        self.step()
        landed = self.target.load(batch, load)
        self.step()
        return landed

    def find(self, batch_id: str) -> Landed | None:
        self.step()
        return self.target.find(batch_id)


# -- stores -------------------------------------------------------------------------------------------------------


@dataclass
class Memory:
    """Where a document store keeps its document."""

    where: str = "memory"
    content: bytes | None = None

    def read(self) -> bytes | None:
        return self.content

    def change(self, edit: Edit) -> None:
        changed = edit(self.content)
        self.content = self.content if changed is None else changed


@dataclass
class StorePort:
    """Without leases: whoever comes may run, and only compare-and-swap and ordinals keep them apart."""

    store: StateStore
    step: Step
    troubles: list[Trouble] = field(default_factory=list)
    """Shared by all: the next save takes one."""

    def get(self, pipeline: str) -> PipelineState | None:
        self.step()
        return self.store.get(pipeline)

    def save(self, state: PipelineState, lease: Lease | None = None) -> PipelineState:
        self.step()
        trouble = self.troubles.pop() if self.troubles else None
        if trouble == "before":
            raise StateError("the store was away", transient=True)
        saved = self.store.save(state, lease)
        if trouble == "after":
            raise StateError("the store's answer got lost", transient=True)
        return saved

    def delete(self, pipeline: str) -> bool:
        return self.store.delete(pipeline)

    def list_pipelines(self) -> list[str]:
        return self.store.list_pipelines()

    def close(self) -> None:
        self.store.close()


@dataclass
class LeasedPort(StorePort):
    """With leases. A holder that is there when somebody else comes is one that was paused or has died: its lease has
    stood still for long enough and is taken over."""

    leases: DocumentStore = field(kw_only=True)

    def acquire(self, resource: str, owner: Owner, expected: Lease | None = None) -> Lease:
        self.step()
        try:
            return self.leases.acquire(resource, owner, expected)
        except LeaseHeld:
            return self.leases.acquire(resource, owner, self.leases.holder(resource))

    def holder(self, resource: str) -> Lease | None:
        return self.leases.holder(resource)

    def beat(self, lease: Lease) -> Lease:
        return self.leases.beat(lease)

    def release(self, lease: Lease) -> None:
        self.step()
        self.leases.release(lease)
