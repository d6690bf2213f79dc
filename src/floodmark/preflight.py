"""All that is found out before anything is read: ledger against target, the table, the look. Starts no Spark and saves
nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from floodmark.changes.columns import find_column, find_columns
from floodmark.errors import ConfigError
from floodmark.existing import check_table
from floodmark.model.ledger import PipelineState
from floodmark.model.outcome import TargetState
from floodmark.model.plan import Look, RunPlan
from floodmark.model.position import Position
from floodmark.model.spec import FullSpec, PipelineSpec
from floodmark.model.table import Cursor, TableInfo
from floodmark.nulls import with_nulls
from floodmark.planner import plan_run, plan_whole_table
from floodmark.ports import AsOf, ChangeStrategy, LookRequest, Source, StateStore, Target, TravelsInTime
from floodmark.reconcile import Reconciled, reconcile
from floodmark.setback import check_not_fallen, server_trouble, set_back
from floodmark.shape.rules import check_loaded, check_rules, landing_table
from floodmark.sources.retrying import RetryingSource


@dataclass(frozen=True)
class Preflight:
    spec: PipelineSpec
    source: Source
    change: ChangeStrategy
    target: Target
    store: StateStore

    def retrying(self, tell: Callable[[str], None] = lambda _: None) -> Preflight:
        """The same, with what may pass tried again, and each try told."""
        return replace(self, source=RetryingSource(self.source, self.spec.retries, tell))

    def at(self, as_of: AsOf) -> Preflight:
        """The same, with the source's table as it was then."""
        if not isinstance(self.source, TravelsInTime):
            raise ConfigError(
                "this source keeps no older versions of its table",
                table=self.spec.source.table,
                declared_at=self.spec.at("source.connection"),
                hint="Delta and Iceberg tables do",
            )
        return replace(self, source=self.source.at(as_of))

    def agreed(self, *, full_refresh: bool = False) -> tuple[Reconciled, TargetState]:
        """Ledger and target compared. A full refresh needs no agreement."""
        stored = self.store.get(self.spec.name)
        target = self.target.inspect()
        if full_refresh:
            return Reconciled(_fresh(self.spec.name, stored)), target
        agreed = reconcile(self.spec, stored, target, lambda: self.target.inspect(deep=True))
        check_table(self.spec, target)
        return agreed, target

    def describe(self) -> tuple[TableInfo, Cursor | None]:
        """The table, and all that the file says of it checked against it before any JVM starts."""
        spec, table = self.spec, self.source.describe()
        find_columns(table, spec.select, spec.at("select"))
        for name in spec.columns:
            find_column(table, name, spec.at(f"columns.{name}"))
        cursor = self.change.cursor(table)
        check_rules(spec, table, cursor)
        _check_range(spec, table, cursor)
        if spec.transform is None:
            landing = landing_table(spec, table)
            for path in ("keys", "partition_by", "cluster_by"):
                names, place = getattr(spec.target, path), spec.at(f"target.{path}")
                check_loaded(table, landing, names, place)
                find_columns(landing, names, place)
        return table, cursor

    def position(self, value: object) -> Position:
        """A user's value, read by the table's own cursor."""
        _, cursor = self.describe()
        return self.change.position(value, Cursor(()) if cursor is None else cursor)

    def started(self, state: PipelineState, cursor: Cursor | None) -> PipelineState:
        """A first run begins where the file says."""
        change = self.spec.change
        if isinstance(change, FullSpec) or cursor is None or change.start is None:
            return state
        if state.head is not None or state.start is not None or state.windows:
            return state
        return state.but(start=self.change.position(change.start, cursor))

    def plan(
        self,
        state: PipelineState,
        table: TableInfo,
        cursor: Cursor | None,
        *,
        full_refresh: bool = False,
        waits: bool = True,
        tell: Callable[[str], None] = lambda _: None,
    ) -> tuple[PipelineState, RunPlan]:
        """The state comes back with its mark set back where the source's server is no longer what it was. `waits` for
        open transactions to end."""
        if cursor is None:
            return state, plan_whole_table(self.spec, state, full_refresh=full_refresh)
        look = self._look(state, cursor, waits=waits)
        if not full_refresh:
            trouble = server_trouble(state, look)
            if trouble is not None:
                state = set_back(self.spec, state, look, trouble, tell)
                look = self._look(state, cursor, waits=waits)
            check_not_fallen(self.spec, state, look, table)
        plan = plan_run(self.spec, state, look, full_refresh=full_refresh)
        return state, with_nulls(self.spec, self.source, state, plan, table, cursor, tell)

    def _look(self, state: PipelineState, cursor: Cursor, *, waits: bool) -> Look:
        change = self.spec.change
        assert not isinstance(change, FullSpec)  # noqa: S101 - it has no cursor
        append = self.spec.target.appends
        return self.source.look(
            LookRequest(
                cursor,
                state.mark,
                rereads=not append or change.lookback is not None,
                ahead_of_proof=not append,
                delay=change.delay,
                fence=change.fence,
                wait=change.wait if waits else timedelta(0),
                lookback=change.lookback,
                pending=state.look,
                ahead=state.ahead,
            )
        )


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


def _check_range(spec: PipelineSpec, table: TableInfo, cursor: Cursor | None) -> None:
    """A range that is replaced has to be found again by its cursor."""
    texts = [] if cursor is None else [column.name for column in cursor.columns if column.kind == "text"]
    if spec.target.mode == "replace_range" and texts:
        raise ConfigError(
            f'column "{texts[0]}" of {table.name} is text, whose order only the source knows: mode replace_range could '
            "not find a range of it in the target",
            table=table.name,
            column=texts[0],
            declared_at=spec.at("target.mode"),
            hint="choose a cursor of numbers or times, or mode append or upsert",
        )
