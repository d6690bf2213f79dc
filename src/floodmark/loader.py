"""One slice on its way: announce, read in one snapshot, shape, load, record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from floodmark.committer import Committer
from floodmark.lease import TTL, LeaseKeeper, NoLease
from floodmark.model.ledger import Intent, PipelineState
from floodmark.model.plan import Slice
from floodmark.model.spec import PipelineSpec
from floodmark.model.table import Cursor, TableInfo
from floodmark.observe.tally import Tally
from floodmark.ports import ReadRequest, Source
from floodmark.shape.batch import shape

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Surroundings:
    """What a run takes from outside, so that tests can hand in their own."""

    root: Path
    spark: Callable[[int | None, Callable[[str], None]], SparkSession]
    """Takes the rows that are expected in all, where known (a small job wants a JVM that starts quickly), and somebody
    to tell what has to be downloaded first."""
    now: Callable[[], datetime]
    new_id: Callable[[], str]
    secrets: tuple[str, ...] = ()
    lease_ttl: timedelta = TTL


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
    session: SparkSession | None = None

    def again(self, state: PipelineState, intent: Intent) -> PipelineState:
        """The load that was begun and did not land. Append does the same window again under the same batch id and
        ordinal: whoever else still tries it, one of them lands. Other modes read from the mark anyway, under the same
        ordinal too, since it was not used up."""
        if self.spec.target.mode != "append":
            return state.but(intent=None)
        self.tally.notice("the last load did not land: its window is loaded now")
        if intent.ordinal < self.ordinal:
            intent = intent.but(ordinal=self.ordinal)
        self.ordinal = intent.ordinal + 1
        return self._commit(state, intent, rows=None)

    def load(self, state: PipelineState, piece: Slice) -> PipelineState:
        intent = Intent(
            batch=self.around.new_id(),
            ordinal=self.ordinal,
            after=piece.after,
            until=piece.until,
            mark=piece.mark,
            run=self.tally.run_id,
            full=piece.full,
            replaces=piece.replaces,
            ahead=piece.ahead,
        )
        self.ordinal += 1
        return self._commit(state, intent, piece.rows)

    def _commit(self, state: PipelineState, intent: Intent, rows: int | None) -> PipelineState:
        spec, tally = self.spec, self.tally
        state = self.committer.announce(state.but(identity=spec.identity), intent, self.keeper.current)
        spark = self._spark(rows)
        with tally.stage("load", f"{spec.target.mode} into {spec.target.table}"), self.source.snapshot() as snapshot:
            request = ReadRequest(self.cursor, intent.after, intent.until, rows)
            batch = self.source.read(spark, request, snapshot)
            batch = shape(batch, spec, self.table, self.cursor, self.around.root)
            self.keeper.check()
            landed = self.committer.load(spark, batch, state, intent, self.cursor, self.keeper.current)
            tally.landed(landed)
        return self.committer.record(state, intent, landed, self.keeper.current)

    def _spark(self, rows: int | None) -> SparkSession:
        """Started when the first slice needs it, one for the run."""
        if self.session is None:
            with self.tally.stage("spark"):
                expected = rows if self.tally.plan is None else self.tally.plan.rows
                self.session = self.around.spark(expected, self.tally.notice)
        return self.session
