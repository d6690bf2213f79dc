"""One run, read top to bottom: lease, recover, look, plan, then slice by slice read, shape, load, commit; table
care at the end, where it is due."""

from __future__ import annotations

from floodmark.care.caretaker import Caretaker
from floodmark.committer import Committer
from floodmark.errors import Fallen
from floodmark.filling import new_columns
from floodmark.lease import LeaseKeeper, NoLease, keep_lease, this_process
from floodmark.loader import Loader, Surroundings, next_ordinal
from floodmark.model.event import Planned
from floodmark.model.ledger import PipelineState, advance, reset
from floodmark.model.outcome import RunResult, TargetState
from floodmark.model.plan import RunPlan, Work
from floodmark.observe.tally import Tally
from floodmark.planner import slices
from floodmark.ports import EventSink
from floodmark.preflight import Preflight
from floodmark.reporting import reported


class Runner:
    """Good for one run: it counts as it goes."""

    def __init__(self, preflight: Preflight, around: Surroundings, sink: EventSink) -> None:
        self._spec = preflight.spec
        self._store = preflight.store
        self._around = around
        self._sink = sink
        self._tally = Tally(self._spec.name, around.new_id(), around.now(), sink)
        self._preflight = preflight.retrying(self._tally.notice)
        self._committer = Committer(preflight.spec, preflight.store, preflight.target, around.now, self._tally.notice)

    # -- without Spark --------------------------------------------------------------------------------------------

    def plan(self, *, full_refresh: bool = False) -> RunPlan:
        """What a run would do now. Takes no lease and saves nothing."""
        ready = self._preflight
        state = ready.agreed(full_refresh=full_refresh)[0].state
        table, cursor = ready.describe()
        return ready.plan(ready.started(state, cursor), table, cursor, full_refresh=full_refresh, waits=False)[1]

    def move(self, value: object | None) -> PipelineState:
        """Sets the mark to a user's position, or to the beginning. Under the lease, and only once ledger and target
        agree: a commit that nobody has recorded yet would otherwise win over the reset."""
        with self._lease() as keeper:
            state = self._preflight.agreed()[0].state
            to = None if value is None else self._preflight.position(value)
            return self._store.save(reset(state, to), keeper.current)

    # -- the run --------------------------------------------------------------------------------------------------

    def run(self, *, full_refresh: bool = False, max_slices: int | None = None) -> RunResult:
        """Never raises for what goes wrong in a run: the result tells, and the history remembers."""

        def work() -> PipelineState:
            with self._lease() as keeper:
                return self._run(keeper, full_refresh, max_slices)

        return reported(self._preflight, self._around, self._tally, self._sink, work)

    def _lease(self) -> LeaseKeeper | NoLease:
        owner = this_process(self._tally.run_id, self._tally.started_at)
        return keep_lease(self._store, self._preflight.target.resource, owner, ttl=self._around.lease_ttl)

    def _run(self, keeper: LeaseKeeper | NoLease, full_refresh: bool, max_slices: int | None) -> PipelineState:
        ready, tally = self._preflight, self._tally
        with tally.stage("check"):
            state, target = self._recover(keeper, full_refresh)
            table, cursor = ready.describe()
            if not full_refresh:
                state = self._with_new_columns(state, new_columns(self._spec, table, target))
        loader = Loader(
            self._spec,
            ready.source,
            self._committer,
            self._around,
            tally,
            keeper,
            table,
            cursor,
            ordinal=next_ordinal(state, target),
        )
        if state.intent is not None:
            state = loader.again(state, state.intent)
        with tally.stage("look"):
            state = ready.started(state, cursor)
            try:
                state, plan = ready.plan(state, table, cursor, full_refresh=full_refresh, tell=tally.notice)
            except Fallen as error:
                self._store.save(state.but(fell_to=error.value), keeper.current)
                raise
        tally.plan = plan
        if not plan.nothing_new:
            self._around.expect(loader.work(state), tally.notice)
        self._sink.emit(Planned(plan))
        loader.server = "" if plan.server is None else plan.server.identity
        state = state.but(look=plan.pending)
        if plan.nothing_new:
            state = self._advanced(state, plan)
        else:
            for piece in slices(plan, self._spec, state, loader.cut):
                if max_slices is not None and tally.slices >= max_slices:
                    tally.complete = False
                    break
                state = loader.load(state, piece)
        if plan.load_nulls and tally.complete:
            state = loader.load_nulls(state)
        seen = state.but(server=plan.server, nulls=plan.nulls if tally.complete else state.nulls, fell_to=None)
        closed = self._close(keeper, seen)
        caretaker = Caretaker(self._spec, ready.target, tally, self._around.stop, self._around.now, keeper.check)
        caretaker.look_after(target, closed, lambda: loader.spark(Work(0)))
        return closed

    def _advanced(self, state: PipelineState, plan: RunPlan) -> PipelineState:
        """A source that has gone quiet lets go of the rows above the mark, or each look would go over them again."""
        if plan.proven is None or plan.proven == state.mark or plan.ahead is None:
            return state
        return advance(state, plan.proven, plan.ahead, self._around.now())

    def _with_new_columns(self, state: PipelineState, names: tuple[str, ...]) -> PipelineState:
        """Remembered before the first load adds them to the table: afterwards nobody could tell that they were new."""
        if not names:
            return state
        self._tally.notice(f"{', '.join(names)}: new in the source, so rows that were loaded before are read again")
        return state.but(unfilled=tuple(sorted({*state.unfilled, *names})))

    def _recover(self, keeper: LeaseKeeper | NoLease, full_refresh: bool) -> tuple[PipelineState, TargetState]:
        """Compare heads, and adopt what the target says, before anything is read."""
        agreed, target = self._preflight.agreed(full_refresh=full_refresh)
        for notice in agreed.notices:
            self._tally.notice(notice)
        state = self._store.save(agreed.state, keeper.current) if agreed.changed else agreed.state
        return state, target

    def _close(self, keeper: LeaseKeeper | NoLease, state: PipelineState) -> PipelineState:
        counted = state.but(
            run_count=state.run_count + 1,
            last_run_id=self._tally.run_id,
            last_run_at=self._tally.started_at,
            identity=state.identity or self._spec.identity,
        )
        return self._store.save(counted, keeper.current)
