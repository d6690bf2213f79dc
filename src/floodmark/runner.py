"""One run, read top to bottom: lease, recover, look, plan, then slice by slice read, shape, load, commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from floodmark.changes.columns import find_columns
from floodmark.committer import Committer
from floodmark.errors import FloodmarkError, SourceError
from floodmark.lease import LeaseKeeper, NoLease, keep_lease, this_process
from floodmark.loader import Loader, Surroundings
from floodmark.model.event import Planned, RunFinished
from floodmark.model.ledger import PipelineState, advance, reset
from floodmark.model.outcome import RunResult, TargetState
from floodmark.model.plan import Look, RunPlan
from floodmark.model.position import Position
from floodmark.model.spec import FullSpec, PipelineSpec
from floodmark.model.table import Cursor, TableInfo
from floodmark.observe.tally import Tally, to_record
from floodmark.planner import plan_run, plan_whole_table, slices
from floodmark.ports import (
    ChangeStrategy,
    EventSink,
    LookRequest,
    Source,
    StateStore,
    SupportsHistory,
    Target,
)
from floodmark.reconcile import Reconciled, reconcile


class Runner:
    def __init__(
        self,
        spec: PipelineSpec,
        source: Source,
        change: ChangeStrategy,
        target: Target,
        store: StateStore,
        around: Surroundings,
    ) -> None:
        self._spec = spec
        self._source = source
        self._change = change
        self._target = target
        self._store = store
        self._around = around
        self._committer = Committer(spec, store, target, around.now)

    # -- without Spark --------------------------------------------------------------------------------------------

    def plan(self, *, full_refresh: bool = False) -> RunPlan:
        """What a run would do now. Takes no lease and saves nothing."""
        state = self._agreed(full_refresh)[0].state
        table, cursor = self._describe()
        return self._plan(self._started(state, cursor), table, cursor, full_refresh, lambda _: None)

    def move(self, value: object | None) -> PipelineState:
        """Sets the mark to a user's position, or to the beginning. Under the lease, and only once ledger and target
        agree: a commit that nobody has recorded yet would otherwise win over the reset."""
        run_id, now = self._around.new_id(), self._around.now()
        owner = this_process(run_id, now)
        with keep_lease(self._store, self._target.resource, owner, ttl=self._around.lease_ttl) as keeper:
            state = self._agreed(full_refresh=False)[0].state
            to = None if value is None else self._position(value)
            return self._store.save(reset(state, to), keeper.current)

    def _position(self, value: object) -> Position:
        _, cursor = self._describe()
        if cursor is None:
            return self._change.position(value, Cursor(()))
        return self._change.position(value, cursor)

    def _agreed(self, full_refresh: bool) -> tuple[Reconciled, TargetState]:
        """Ledger and target compared; nothing is saved. A full refresh needs no agreement."""
        stored = self._store.get(self._spec.name)
        target = self._target.inspect()
        if full_refresh:
            return Reconciled(_fresh(self._spec.name, stored)), target
        return reconcile(self._spec, stored, target, lambda: self._target.inspect(deep=True)), target

    def _describe(self) -> tuple[TableInfo, Cursor | None]:
        """The table, and all that the file says of it checked against it before any JVM starts."""
        table = self._source.describe()
        if self._spec.transform is None:
            target = self._spec.target
            for path in ("keys", "partition_by", "cluster_by"):
                find_columns(table, getattr(target, path), self._spec.at(f"target.{path}"))
        return table, self._change.cursor(table)

    def _started(self, state: PipelineState, cursor: Cursor | None) -> PipelineState:
        """A first run begins where the file says."""
        change = self._spec.change
        if isinstance(change, FullSpec) or cursor is None or change.start is None:
            return state
        if state.head is not None or state.start is not None or state.windows:
            return state
        return state.but(start=self._change.position(change.start, cursor))

    def _plan(
        self,
        state: PipelineState,
        table: TableInfo,
        cursor: Cursor | None,
        full_refresh: bool,
        tell: Callable[[str], None],
    ) -> RunPlan:
        if cursor is None:
            return plan_whole_table(self._spec, state, full_refresh=full_refresh)
        look = self._look(state, cursor)
        plan = plan_run(self._spec, state, look, full_refresh=full_refresh)
        if not plan.nothing_new or plan.first:
            self._check_nulls(table, cursor, tell)
        return plan

    def _look(self, state: PipelineState, cursor: Cursor) -> Look:
        change = self._spec.change
        assert not isinstance(change, FullSpec)  # noqa: S101 - it has no cursor
        return self._source.look(
            LookRequest(cursor, state.mark, self._spec.target.mode != "append", change.delay, state.look, state.ahead)
        )

    def _check_nulls(self, table: TableInfo, cursor: Cursor, tell: Callable[[str], None]) -> None:
        change = self._spec.change
        nullable = [c.name for c in cursor.columns if c.nullable]
        if isinstance(change, FullSpec) or not nullable:
            return
        count = self._source.count_nulls(nullable)
        if not count:
            return
        names = ", ".join(nullable)
        rows = f"{count:,} rows of {table.name} have" if count > 1 else f"1 row of {table.name} has"
        if change.nulls == "skip":
            tell(f"{rows} no {names}: left out")
            return
        raise SourceError(
            f"{rows} no {names}, so no window can ever hold {'them' if count > 1 else 'it'}",
            table=table.name,
            column=names,
            declared_at=self._spec.at("change.column") or self._spec.at("change"),
            hint="choose one:\n  nulls: skip     leave them out, counted\n  or fill the column in the source",
        )

    # -- the run --------------------------------------------------------------------------------------------------

    def run(self, sink: EventSink, *, full_refresh: bool = False, max_slices: int | None = None) -> RunResult:
        """Never raises for what goes wrong in a run: the result tells, and the history remembers."""
        tally = Tally(self._spec.name, self._around.new_id(), self._around.now(), sink)
        state, failure = None, None
        try:
            with self._lease(tally) as keeper:
                state = self._run(tally, sink, keeper, full_refresh, max_slices)
        except Exception as error:
            failure = error
            if isinstance(error, FloodmarkError):
                error.located(pipeline=self._spec.name, declared_at=self._spec.at())
        finally:
            self._source.close()
        result = self._remembered(tally.result(state, failure))
        sink.emit(RunFinished(result))
        return result

    def _remembered(self, result: RunResult) -> RunResult:
        """In the history, where there is one. A run that can't be recorded has still ended as it did: that it failed,
        and why, must not be hidden behind a full disk, nor a load that landed be called a failure."""
        if isinstance(self._store, SupportsHistory):
            try:
                self._store.record_run(to_record(result, self._around.secrets))
            except FloodmarkError as error:
                notice = f"this run is not in the history: {error.message}"
                return replace(result, notices=(*result.notices, notice))
        return result

    def _lease(self, tally: Tally) -> LeaseKeeper | NoLease:
        owner = this_process(tally.run_id, tally.started_at)
        return keep_lease(self._store, self._target.resource, owner, ttl=self._around.lease_ttl)

    def _run(
        self, tally: Tally, sink: EventSink, keeper: LeaseKeeper | NoLease, full_refresh: bool, max_slices: int | None
    ) -> PipelineState:
        with tally.stage("check"):
            state, target = self._recover(tally, keeper, full_refresh)
            table, cursor = self._describe()
        loader = Loader(
            self._spec,
            self._source,
            self._committer,
            self._around,
            tally,
            keeper,
            table,
            cursor,
            ordinal=_next_ordinal(state, target),
        )
        if state.intent is not None:
            state = loader.again(state, state.intent)
        with tally.stage("look"):
            state = self._started(state, cursor)
            plan = self._plan(state, table, cursor, full_refresh, tally.notice)
        tally.plan = plan
        sink.emit(Planned(plan))
        state = state.but(look=plan.pending)
        if plan.nothing_new:
            state = self._advanced(state, plan)
        else:
            for piece in slices(plan, self._spec, state, self._cut(cursor)):
                if max_slices is not None and tally.slices >= max_slices:
                    tally.complete = False
                    break
                state = loader.load(state, piece)
        return self._close(tally, keeper, state)

    def _advanced(self, state: PipelineState, plan: RunPlan) -> PipelineState:
        """A source that has gone quiet lets go of the rows above the mark, or each look would go over them again."""
        if plan.proven is None or plan.proven == state.mark or plan.ahead is None:
            return state
        return advance(state, plan.proven, plan.ahead, self._around.now())

    def _recover(
        self, tally: Tally, keeper: LeaseKeeper | NoLease, full_refresh: bool
    ) -> tuple[PipelineState, TargetState]:
        """Compare heads, and adopt what the target says, before anything is read."""
        agreed, target = self._agreed(full_refresh)
        for notice in agreed.notices:
            tally.notice(notice)
        state = self._store.save(agreed.state, keeper.current) if agreed.changed else agreed.state
        return state, target

    def _cut(self, cursor: Cursor | None) -> Callable[[Position | None, Position, int], Position | None]:
        def cut(after: Position | None, until: Position, rows: int) -> Position | None:
            return None if cursor is None else self._source.next_cut(cursor, after, until, rows)

        return cut

    def _close(self, tally: Tally, keeper: LeaseKeeper | NoLease, state: PipelineState) -> PipelineState:
        counted = state.but(
            run_count=state.run_count + 1,
            last_run_id=tally.run_id,
            last_run_at=tally.started_at,
            identity=state.identity or self._spec.identity,
        )
        return self._store.save(counted, keeper.current)


def _fresh(pipeline: str, stored: PipelineState | None) -> PipelineState:
    """For a full refresh: nothing is known, but the run goes on counting."""
    if stored is None:
        return PipelineState(pipeline=pipeline)
    return PipelineState(
        pipeline=pipeline,
        revision=stored.revision,
        run_count=stored.run_count,
        last_run_id=stored.last_run_id,
        last_run_at=stored.last_run_at,
        metadata=stored.metadata,
    )


def _next_ordinal(state: PipelineState, target: TargetState) -> int:
    """Above everything that the target would skip, commits that a restore undid included."""
    return max(target.top_ordinal, 0 if state.head is None else state.head.ordinal) + 1
