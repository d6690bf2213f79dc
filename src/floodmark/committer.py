"""Intent, load, commit. A commit has three outcomes: landed, not landed, unknown; the target's history tells which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from floodmark.errors import FloodmarkError, LeaseError, OutcomeUnknown, StateConflict, StateError, TargetError
from floodmark.javawords import LOST_HINT, first_line, is_lost
from floodmark.model.lease import Lease
from floodmark.model.ledger import Intent, PipelineState, begin, settle
from floodmark.model.outcome import Head, Landed, Load
from floodmark.model.spec import PipelineSpec
from floodmark.model.table import Cursor
from floodmark.model.window import MAIN
from floodmark.ports import StateStore, Target
from floodmark.retries import retrying, sounds_transient

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Committer:
    spec: PipelineSpec
    store: StateStore
    target: Target
    now: Callable[[], datetime]
    tell: Callable[[str], None]

    def announce(self, state: PipelineState, intent: Intent, lease: Lease | None) -> PipelineState:
        """Before anything is read: whoever finds this intent knows which commit to look for."""
        return self._saved(begin(state, intent), lease)

    def load(
        self,
        spark: SparkSession,
        batch: DataFrame,
        state: PipelineState,
        intent: Intent,
        cursor: Cursor | None,
        lease: Lease | None,
        rows: int | None = None,
        *,
        beyond: bool = False,
        may_be_empty: bool = False,
    ) -> Landed | None:
        """None: there was nothing to load."""
        epoch = 0 if lease is None else lease.epoch
        load = self._load(batch, state, intent, cursor, epoch, rows, beyond=beyond)
        try:
            if may_be_empty and batch.isEmpty():
                return None
            landed = self.target.load(spark, batch, load)
        except (LeaseError, OutcomeUnknown):
            raise
        except Exception as error:
            landed = self._after_failure(intent, error)
        if landed is None:
            raise TargetError(
                f"the target skipped batch {intent.ordinal}: another runner has used its place",
                table=self.spec.target.table,
                hint="run again: the ledger is compared with the target first",
            )
        return landed

    def _load(
        self,
        batch: DataFrame,
        state: PipelineState,
        intent: Intent,
        cursor: Cursor | None,
        epoch: int,
        rows: int | None,
        *,
        beyond: bool,
    ) -> Load:
        """A transform of an append may have dropped the cursor; then there is no order to hand on."""
        needed = set() if cursor is None else {*cursor.names, *([cursor.fallback.name] if cursor.fallback else [])}
        names = () if cursor is None or not needed <= set(batch.columns) else cursor.names
        zone = None if cursor is None or cursor.leading.zoned else cursor.timezone
        target = self.spec.target
        fallback = None if cursor is None or cursor.fallback is None else cursor.fallback.name
        # Rows without a cursor value are read again each time they are counted; all others are versions of their own.
        only_new = target.appends and intent.nulls
        head = self._head(state, intent, epoch)
        # Not while a reset reads old stretches again: there an older row must not overwrite a newer one.
        later_wins = intent.lane == MAIN and state.reached is None
        return Load(intent, head, target.mode, target.keys, names, zone, fallback, later_wins, only_new, rows, beyond)

    def _after_failure(self, intent: Intent, error: Exception) -> Landed:
        """The error may have come after the commit. Only the history knows; where it can't be read, nobody does."""
        try:
            landed = self.target.find(intent.batch)
        except FloodmarkError as trouble:
            raise OutcomeUnknown(
                f"the load failed ({first_line(error)}) and the target can't be asked whether it landed: {trouble}",
                table=self.spec.target.table,
                hint="make the target reachable and run again: nothing is loaded twice",
            ) from error
        if landed is not None:
            return landed
        if isinstance(error, FloodmarkError):
            raise error
        raise TargetError(
            f"the load failed: {first_line(error)}",
            table=self.spec.target.table,
            transient=sounds_transient(error) and not is_lost(error),
            hint=LOST_HINT if is_lost(error) else None,
        ) from error

    def abandon(self, state: PipelineState, lease: Lease | None) -> None:
        """The intent did not land and will not: nobody needs to look for it."""
        self.store.save(state.but(intent=None), lease)

    def record(self, state: PipelineState, intent: Intent, landed: Landed | None, lease: Lease | None) -> PipelineState:
        """A batch without rows makes no commit: the ledger goes on, and the target's head stays behind, which costs a
        state rebuilt from it one re-read."""
        if landed is None:
            empty = settle(state, intent, version=None, table_id=None, rows=0, at=self.now())
            return self._saved(empty.but(head=state.head), lease)
        settled = settle(
            state, intent, version=landed.version, table_id=landed.table_id, rows=landed.rows.loaded, at=self.now()
        )
        return self._saved(settled, lease)

    def _saved(self, state: PipelineState, lease: Lease | None) -> PipelineState:
        """A store that was away for a moment is asked again. The save that failed may have gone through: then its own
        revision is in the way of the second one."""
        in_doubt = False

        def save() -> PipelineState:
            nonlocal in_doubt
            try:
                return self.store.save(state, lease)
            except StateConflict:
                stored = self.store.get(state.pipeline) if in_doubt else None
                if stored is None or stored.but(revision=state.revision) != state:
                    raise
                return stored
            except StateError as error:
                in_doubt = in_doubt or error.transient
                raise

        return retrying(self.spec.retries, save, self.tell)

    def _head(self, state: PipelineState, intent: Intent, epoch: int) -> Head:
        after = settle(state, intent, version=None, table_id=None, rows=None, at=self.now())
        return Head(
            pipeline=self.spec.name,
            lane=intent.lane,
            ordinal=intent.ordinal,
            batch=intent.batch,
            start=after.start,
            after=intent.after,
            until=intent.until,
            mark=after.mark,
            full=intent.full,
            epoch=epoch,
            run=intent.run,
            at=self.now(),
            ahead=after.ahead,
            server=intent.server,
            identity=self.spec.identity,
        )
