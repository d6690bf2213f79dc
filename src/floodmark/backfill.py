"""A range below the mark, loaded again. The mark stays; each slice takes the lease by itself, so that normal runs get
their turn between two of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from floodmark.committer import Committer
from floodmark.errors import ConfigError, LeaseHeld, Refused
from floodmark.lease import LeaseKeeper, NoLease, keep_lease, this_process
from floodmark.loader import Loader, Surroundings, next_ordinal
from floodmark.model.event import Planned
from floodmark.model.ledger import PipelineState
from floodmark.model.outcome import RunResult, TargetState
from floodmark.model.plan import RunPlan, Slice
from floodmark.model.position import has_passed
from floodmark.model.table import Cursor, TableInfo
from floodmark.observe.tally import Tally
from floodmark.planner import plan_backfill
from floodmark.ports import AsOf, EventSink
from floodmark.preflight import Preflight
from floodmark.reporting import reported


@dataclass(frozen=True)
class Range:
    """What the user asked for, as written; None is the beginning, or the mark."""

    after: object | None
    until: object | None
    version: object | None = None
    """Of the source's table; as it is now when unset."""
    moment: object | None = None
    """That the version is to be as of."""

    @property
    def as_of(self) -> AsOf | None:
        if self.version is None and self.moment is None:
            return None
        if self.version is not None and self.moment is not None:
            raise ConfigError("a version and a moment are both given: choose one of them")
        try:
            if self.version is not None:
                return AsOf(version=int(str(self.version)))
            moment = self.moment if isinstance(self.moment, datetime) else datetime.fromisoformat(str(self.moment))
        except ValueError as error:
            wanted = "a time such as 2026-11-15 10:00:00" if self.version is None else "the number of a version"
            raise ConfigError(f"{self.version or self.moment!r} is not {wanted}") from error
        return AsOf(moment=moment if moment.tzinfo else moment.replace(tzinfo=UTC))


class Backfill:
    """Good for one run, like a Runner."""

    def __init__(self, preflight: Preflight, around: Surroundings, sink: EventSink) -> None:
        self._spec = preflight.spec
        self._around = around
        self._sink = sink
        run_id = around.new_id()
        self._tally = Tally(self._spec.name, run_id, around.now(), sink, lane=f"backfill-{run_id}")
        self._now = preflight
        self._preflight = preflight.retrying(self._tally.notice)
        self._committer = Committer(preflight.spec, preflight.store, preflight.target, around.now, self._tally.notice)

    def plan(self, wanted: Range) -> RunPlan:
        """What `run` would do now. Takes no lease and saves nothing."""
        self._travel(wanted)
        state = self._preflight.agreed()[0].state
        return self._plan(wanted, state, self._described()[1])

    def run(self, wanted: Range) -> RunResult:
        """Like a run, it never raises for what goes wrong."""
        return reported(self._preflight, self._around, self._tally, self._sink, lambda: self._run(wanted))

    def fill(self) -> RunResult:
        """All that lies below the mark, for columns that were not there when it was loaded."""

        def work() -> PipelineState:
            self._run(Range(None, None))
            with self._turn() as keeper:
                state = self._recovered(keeper)[0]
                return self._preflight.store.save(state.but(unfilled=()), keeper.current)

        return reported(self._preflight, self._around, self._tally, self._sink, work)

    def _run(self, wanted: Range) -> PipelineState:
        tally = self._tally
        with self._lease() as keeper, tally.stage("check"):
            self._travel(wanted)
            state, target = self._recovered(keeper)
            table, cursor = self._described()
            plan = self._plan(wanted, state, cursor)
        tally.plan = plan
        self._sink.emit(Planned(plan))
        loader = Loader(
            self._spec,
            self._preflight.source,
            self._committer,
            self._around,
            tally,
            keeper,
            table,
            cursor,
            ordinal=next_ordinal(state, target),
        )
        after, until = plan.after, plan.until
        while until is not None and not plan.nothing_new:
            with self._turn() as keeper:
                state, target = self._recovered(keeper)
                loader.keeper, loader.ordinal = keeper, next_ordinal(state, target)
                # In append the range is replaced in one commit; elsewhere each slice is right by itself.
                cut = None if self._appends else loader.cut(after, until, self._spec.batch_rows)
                end = until if cut is None else cut
                rows = plan.rows if plan.slices == 1 else self._spec.batch_rows
                state = loader.load(state, Slice(after, end, end, rows, replaces=self._appends))
            if cut is None:
                break
            after = cut
        return state

    def _travel(self, wanted: Range) -> None:
        if (as_of := wanted.as_of) is not None:
            self._preflight = self._now.at(as_of).retrying(self._tally.notice)
            self._tally.notice(f"reads the source as it was: {as_of}")

    @property
    def _appends(self) -> bool:
        return self._spec.target.appends

    def _described(self) -> tuple[TableInfo, Cursor]:
        table, cursor = self._preflight.describe()
        if cursor is None:
            raise ConfigError(
                "this pipeline reads the whole table on each run, so there is no range to load again",
                declared_at=self._spec.at("change"),
                hint=f"floodmark run {self._spec.name}",
            )
        return table, cursor

    def _plan(self, wanted: Range, state: PipelineState, cursor: Cursor) -> RunPlan:
        """Clamped to the mark: what lies above it belongs to the next run."""
        change, mark = self._preflight.change, state.mark
        if mark is None:
            raise Refused("nothing is loaded yet, so there is nothing to fill", hint=f"floodmark run {self._spec.name}")
        after = None if wanted.after is None else change.position(wanted.after, cursor)
        until = mark if wanted.until is None else change.position(wanted.until, cursor)
        if has_passed(until, mark):
            until = mark
        if has_passed(after, until):
            beyond = " (the mark: what lies above it is for `floodmark run`)" if until == mark else ""
            raise ConfigError(f"the range is empty: it begins at {after} and ends at {until}{beyond}")
        rows = self._preflight.source.count(cursor, after, until)
        return plan_backfill(self._spec, after, until, rows)

    def _recovered(self, keeper: LeaseKeeper | NoLease) -> tuple[PipelineState, TargetState]:
        """Runs that came in between have moved the state. A load of theirs that was begun and did not land is not
        repeated here: the next run reads the same window from the mark, and its ordinal is spent by ours."""
        agreed, target = self._preflight.agreed()
        state = agreed.state
        return (self._preflight.store.save(state, keeper.current) if agreed.changed else state), target

    def _lease(self) -> LeaseKeeper | NoLease:
        owner = this_process(self._tally.run_id, self._tally.started_at)
        return keep_lease(self._preflight.store, self._preflight.target.resource, owner, ttl=self._around.lease_ttl)

    @contextmanager
    def _turn(self) -> Iterator[LeaseKeeper | NoLease]:
        """Waits for a run that came in between two slices. Being refused takes until the holder's next beat, so this
        is no busy loop."""
        waiting = False
        with ExitStack() as stack:
            while True:
                try:
                    keeper = self._lease()
                    stack.enter_context(keeper)
                    break
                except LeaseHeld as held:
                    if not waiting:
                        self._tally.notice(f"waits for its turn: {held.message}")
                    waiting = True
                    self._around.stop.check()
            yield keeper
