"""One slice on its way: announce, read in one snapshot, shape, load, record."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from floodmark.committer import Committer
from floodmark.errors import LeaseError, OutcomeUnknown
from floodmark.lease import TTL, LeaseKeeper, NoLease
from floodmark.model.ledger import Intent, PipelineState
from floodmark.model.outcome import Landed, TargetState
from floodmark.model.plan import Slice, Work
from floodmark.model.position import Position
from floodmark.model.spec import PipelineSpec
from floodmark.model.table import Cursor, TableInfo
from floodmark.model.window import MAIN
from floodmark.observe.tally import Tally
from floodmark.ports import PreparesLoads, ReadRequest, Source
from floodmark.retries import retrying
from floodmark.shape.batch import shape
from floodmark.shape.provenance import with_provenance
from floodmark.shape.rules import landing_cursor
from floodmark.stop import Stop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Surroundings:
    """What a run takes from outside, so that tests can hand in their own."""

    root: Path
    spark: Callable[[Work, Callable[[str], None]], SparkSession]
    """Takes the work ahead (little of it wants a JVM that starts quickly), and somebody to tell what has to be
    downloaded first."""
    now: Callable[[], datetime]
    new_id: Callable[[], str]
    secrets: tuple[str, ...] = ()
    lease_ttl: timedelta = TTL
    stop: Stop = field(default_factory=Stop)
    expect: Callable[[Work, Callable[[str], None]], None] = lambda _work, _tell: None
    """Told beforehand that `spark` will be asked for, so that it can be on its way."""


@dataclass
class Loader:
    """The slices of one run, one after the other, each with the next ordinal."""

    spec: PipelineSpec
    source: Source
    committer: Committer
    around: Surroundings
    tally: Tally
    keeper: LeaseKeeper | NoLease
    table: TableInfo
    cursor: Cursor | None
    ordinal: int
    server: str = ""
    """Who the rows come from, for the ledger and the head."""
    session: SparkSession | None = None

    def again(self, state: PipelineState, intent: Intent) -> PipelineState:
        """The load that was begun and did not land. Append does the same window again under the same batch id and
        ordinal: whoever else still tries it, one of them lands. Other modes read from the mark anyway, under the same
        ordinal too, since it was not used up; and a backfill is for its user to repeat."""
        if not self.spec.target.appends or intent.lane != MAIN:
            return state.but(intent=None)
        self.tally.notice("the last load did not land: its window is loaded now")
        if intent.ordinal < self.ordinal:
            intent = intent.but(ordinal=self.ordinal)
        self.ordinal = intent.ordinal + 1
        return self._commit(state, intent, rows=None)

    def cut(self, after: Position | None, until: Position, rows: int) -> Position | None:
        return None if self.cursor is None else self.source.next_cut(self.cursor, after, until, rows)

    def load(self, state: PipelineState, piece: Slice) -> PipelineState:
        intent = Intent(
            batch=self.around.new_id(),
            ordinal=self.ordinal,
            after=piece.after,
            until=piece.until,
            mark=piece.mark,
            lane=self.tally.lane,
            run=self.tally.run_id,
            full=piece.full,
            replaces=piece.replaces,
            ahead=piece.ahead,
            server=self.server,
        )
        self.ordinal += 1
        return self._commit(state, intent, piece.rows, piece.known)

    def load_nulls(self, state: PipelineState) -> PipelineState:
        """The rows that lie in no window, in a lane of their own: the mark stays."""
        intent = Intent(
            batch=self.around.new_id(),
            ordinal=self.ordinal,
            after=state.mark,
            until=state.mark,
            mark=state.mark,
            lane=f"nulls-{self.tally.run_id}",
            run=self.tally.run_id,
            server=self.server,
            nulls=True,
        )
        self.ordinal += 1
        return self._commit(state, intent, None)

    def _commit(
        self, state: PipelineState, intent: Intent, rows: int | None, known: Position | None = None
    ) -> PipelineState:
        self.around.stop.check()
        state = self.committer.announce(state.but(identity=self.spec.identity), intent, self.keeper.current)
        spark = self.spark(self.work(state, rows))
        if state.head is not None and self.tally.slices == 0:
            self._prepare(spark)
        try:
            with self.tally.stage("load", f"{self.spec.target.mode} into {self.spec.target.table}"):
                attempt = partial(self._attempt, spark, state, intent, rows, known)
                landed = retrying(self.spec.retries, attempt, self.tally.notice)
                self.tally.landed(intent.after, landed)
        except Exception as error:
            if self.around.stop.asked and not isinstance(error, OutcomeUnknown | LeaseError):
                # It did not land, and nobody works on it any more: nothing is left for the next run to find out.
                self.committer.abandon(state, self.keeper.current)
                self.around.stop.check()
            raise
        return self.committer.record(state, intent, landed, self.keeper.current)

    def _attempt(
        self, spark: SparkSession, state: PipelineState, intent: Intent, rows: int | None, known: Position | None
    ) -> Landed | None:
        """The same batch id and ordinal each time, from a snapshot of its own. None: there was nothing to load."""
        request = ReadRequest(self.cursor, known or intent.after, intent.until, rows, intent.nulls)
        with self.around.stop.cutting_short(spark.interruptAll), self.source.snapshot() as snapshot:
            batch = self.source.read(spark, request, snapshot)
            batch = shape(batch, self.spec, self.table, self.cursor, self.around.root)
            batch = with_provenance(batch, self.spec, intent.batch, self.around.now())
            self.keeper.check()
            order, lease = landing_cursor(self.spec, self.cursor), self.keeper.current
            return self.committer.load(
                spark,
                batch,
                state,
                intent,
                order,
                lease,
                rows,
                beyond=known is not None,
                may_be_empty=self._may_be_empty(intent),
            )

    def _prepare(self, spark: SparkSession) -> None:
        """While the source is read. Whatever is in its way, the load meets too, and has the words for it."""
        target = self.committer.target
        if not isinstance(target, PreparesLoads):
            return

        def prepare() -> None:
            with suppress(Exception):
                target.prepare(spark)

        Thread(target=prepare, name="floodmark-prepare", daemon=True).start()

    def _may_be_empty(self, intent: Intent) -> bool:
        """A transform may leave out every row. Elsewhere the look has seen some, and a load that replaces rows is one
        without them, too."""
        return self.spec.transform is not None and self.cursor is not None and not intent.full and not intent.replaces

    def work(self, state: PipelineState, rows: int | None = None) -> Work:
        """Of the whole run, where it is planned. A merge goes over the table as well."""
        planned = rows if self.tally.plan is None else self.tally.plan.rows
        return Work(planned, state.rows_total if self.spec.target.matches_keys else 0)

    def spark(self, work: Work) -> SparkSession:
        """Started when the first slice, or the table's care, needs it; one for the run."""
        if self.session is None:
            with self.tally.stage("spark"):
                self.session = self.around.spark(work, self.tally.notice)
        return self.session


def next_ordinal(state: PipelineState, target: TargetState) -> int:
    """Above everything that the target would skip, commits that a restore undid included."""
    return max(target.top_ordinal, 0 if state.head is None else state.head.ordinal) + 1
