"""A loaded floodmark.yml: what the command line, Python code and orchestrators all work with."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark.errors import ConfigError
from floodmark.itself import refuse_itself
from floodmark.lease import standing, this_process
from floodmark.loader import Surroundings
from floodmark.model.ledger import PipelineState
from floodmark.model.outcome import PipelineStatus, RunRecord, RunResult, TargetState
from floodmark.model.plan import RunPlan, Work
from floodmark.model.spec import ConnectionOptions, PipelineSpec, ProjectSpec
from floodmark.observe.status import status_of
from floodmark.ports import (
    EventSink,
    HandsBack,
    LooksThroughSpark,
    Source,
    StateStore,
    SupportsHistory,
    SupportsLeases,
    Target,
    TellsGrants,
)
from floodmark.preflight import Preflight
from floodmark.registry import Registry
from floodmark.runner import Runner
from floodmark.stop import Stop
from floodmark.stores import backend_of, create_state_store
from floodmark.wildcard import Wildcards

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from floodmark.backfill import Backfill


class Silent:
    """The sink of a run that nobody watches."""

    def emit(self, event: object) -> None:
        """Nothing to show."""


class Project:
    def __init__(
        self,
        spec: ProjectSpec,
        registry: Registry | None = None,
        spark: SparkSession | None = None,
        *,
        resident: bool = False,
    ) -> None:
        """`resident` lets `spark: {resident: auto}` leave a warm Spark behind, as the command line does."""
        self.spec = spec
        self._given_spark = spark
        self._resident = resident
        self._registry = registry or Registry.default()
        self._root = Path(spec.root)
        self._store: StateStore | None = None
        self._spark: SparkSession | None = None
        self._begun = False
        self._stop = Stop()
        self._wildcards = Wildcards(self._source)

    def check(self) -> None:
        """What can be known of each pipeline offline. Of those that stand for many tables, the database knows more."""
        for spec in self.spec.pipelines.values():
            if spec.source.tables is None:
                refuse_itself(spec, self.spec.connections)
                self._source(spec)
                self._target(spec)

    # -- running --------------------------------------------------------------------------------------------------

    def plan(self, name: str, *, full_refresh: bool = False, sink: EventSink | None = None) -> RunPlan:
        """What a run would do now; starts no Spark. `sink` is told of what is tried again."""
        return self._runner(name, sink).plan(full_refresh=full_refresh)

    def grants(self, name: str) -> list[str]:
        """What the source's user must be allowed to, as statements; empty where the database keeps no rights. Opens no
        connection, unless it takes the database to know which tables a wildcard means."""
        spec = self._pipeline(name)
        self._wildcards.check(spec)
        source = self._source(spec)
        return source.grants() if isinstance(source, TellsGrants) else []

    def run(
        self,
        name: str,
        *,
        full_refresh: bool = False,
        max_slices: int | None = None,
        sink: EventSink | None = None,
    ) -> RunResult:
        """Moves what changed. What goes wrong is in the result: `success`, `errors`, `failure`."""
        result = self._runner(name, sink).run(full_refresh=full_refresh, max_slices=max_slices)
        wants = self._pipeline(name).target.new_columns == "backfill"
        state = self.store.get(name) if wants and result.success and result.complete else None
        if state is None or not state.unfilled or state.mark is None:
            return result
        filled = self._backfill(name, sink).fill()
        return replace(result.plus(filled), lane=result.lane, window=result.window, guarantee=result.guarantee)

    def run_until_complete(
        self,
        name: str,
        *,
        full_refresh: bool = False,
        max_slices: int | None = None,
        sink: EventSink | None = None,
    ) -> RunResult:
        """Runs again until a look finds nothing new; the result has the totals."""
        total = self.run(name, full_refresh=full_refresh, max_slices=max_slices, sink=sink)
        while total.success and not total.nothing_new and (max_slices is None or total.slices < max_slices):
            left = None if max_slices is None else max_slices - total.slices
            result = self.run(name, max_slices=left, sink=sink)
            total = total.plus(result)
            if result.nothing_new:
                break
        return total

    def backfill(
        self,
        name: str,
        after: object | None = None,
        until: object | None = None,
        *,
        source_version: int | None = None,
        source_timestamp: object | None = None,
        sink: EventSink | None = None,
    ) -> RunResult:
        """Loads `[after, until)` again without moving the mark; None is the beginning, or the mark. A lake's table may
        be read as it was, by version or as of a time."""
        from floodmark.backfill import Range

        return self._backfill(name, sink).run(Range(after, until, source_version, source_timestamp))

    def plan_backfill(
        self,
        name: str,
        after: object | None = None,
        until: object | None = None,
        *,
        source_version: int | None = None,
        source_timestamp: object | None = None,
        sink: EventSink | None = None,
    ) -> RunPlan:
        """What a backfill would do now; starts no Spark."""
        from floodmark.backfill import Range

        return self._backfill(name, sink).plan(Range(after, until, source_version, source_timestamp))

    def stop(self) -> None:
        """Ends what runs in other threads: its slice is given up, or committed if it was about to be. For good: load
        the project again to run again."""
        self._stop.ask()

    def abort(self) -> None:
        """Ends the Spark that this project started, and with it whatever runs on it."""
        self.stop()
        if self._spark is not None:
            from floodmark.spark.session import stop_session

            stop_session(self._spark, cleanly=False)

    async def run_async(self, name: str, **options: Any) -> RunResult:
        """The same in a thread, for callers with an event loop."""
        import asyncio  # loaded already where there is a loop; nobody else should pay for it

        return await asyncio.to_thread(self.run, name, **options)

    # -- looking --------------------------------------------------------------------------------------------------

    def names(self, patterns: Sequence[str] = ()) -> list[str]:
        """Pipelines by name or wildcard, in the file's order; all of them without a pattern. Where `source.tables`
        stands for many, it takes the database to know them."""
        self.spec = self._wildcards.expand(self.spec, patterns)
        known = list(self.spec.pipelines)
        chosen: list[str] = []
        for pattern in patterns or ["*"]:
            parents = self._wildcards.parent
            found = [n for n in known if pattern in (n, parents(n)) or fnmatchcase(n, pattern)]
            if not found:
                close = get_close_matches(pattern, known, n=1)
                guess = f"did you mean {close[0]}? " if close else ""
                raise ConfigError(f"there is no pipeline {pattern}", hint=f"{guess}Pipelines: {', '.join(known)}")
            chosen += [name for name in found if name not in chosen]
        return [name for name in known if name in chosen]

    def status(self, name: str) -> PipelineStatus:
        return status_of(name, self.state(name), self.history(name), running=self._is_running(name))

    def _is_running(self, name: str) -> bool:
        if not isinstance(self.store, SupportsLeases):
            return False
        held = self.store.holder(self._target(self._pipeline(name)).resource)
        return held is not None and standing(held.owner, this_process("", datetime.now(UTC))) != "gone"

    def history(self, name: str, limit: int = 20) -> list[RunRecord]:
        self._pipeline(name)
        return self.store.runs(name, limit) if isinstance(self.store, SupportsHistory) else []

    # -- state ----------------------------------------------------------------------------------------------------

    @property
    def store(self) -> StateStore:
        if self._store is None:
            if backend_of(self.spec.state) == "target":
                self.names()  # that store asks the targets, so it has to know every one
            self._store = create_state_store(
                self.spec.state,
                root=self._root,
                registry=self._registry,
                inspect=self._inspect,
                pipelines=tuple(self.spec.pipelines),
            )
        return self._store

    def to_keep(self) -> dict[str, str]:
        """With `state: env:NAME`, what NAME must hold for the next run; empty when nothing changed, or for a store that
        keeps its state itself."""
        return self._store.to_keep() if isinstance(self._store, HandsBack) else {}

    def state(self, name: str) -> PipelineState | None:
        self._pipeline(name)
        return self.store.get(name)

    def set_mark(self, name: str, value: str) -> PipelineState:
        """The next run begins at this position; rows between the old mark and it are not loaded by it."""
        return self._runner(name).move(value)

    def reset(self, name: str, to: str | None = None) -> PipelineState:
        """The next run begins at the beginning, or at a position. In append it replaces what it loads again."""
        return self._runner(name).move(to)

    def close(self) -> None:
        if self._begun:
            from floodmark.spark.session import end_beginning, stop_session

            end_beginning()
            if self._spark is not None:
                stop_session(self._spark)
            self._spark, self._begun = None, False
        if self._store is not None:
            self._store.close()
            self._store = None

    # -- parts ----------------------------------------------------------------------------------------------------

    def _pipeline(self, name: str) -> PipelineSpec:
        return self.spec.pipelines[self.names([name])[0]]

    def _runner(self, name: str, sink: EventSink | None = None) -> Runner:
        return Runner(self._preflight(name), self._around(), sink or Silent())

    def _backfill(self, name: str, sink: EventSink | None) -> Backfill:
        from floodmark.backfill import Backfill  # no run needs it

        return Backfill(self._preflight(name), self._around(), sink or Silent())

    def _preflight(self, name: str) -> Preflight:
        spec = self._wildcards.resolved(self._pipeline(name))
        refuse_itself(spec, self.spec.connections)
        source = self._source(spec)
        change = self._registry.get("change", spec.change.by)(spec.change, spec.at)
        return Preflight(spec, source, change, self._target(spec), self.store)

    def _around(self) -> Surroundings:
        return Surroundings(
            root=self._root,
            spark=self._session,
            expect=self._begin_session,
            now=lambda: datetime.now(UTC),
            new_id=lambda: uuid.uuid4().hex[:16],
            secrets=self.spec.secrets,
            lease_ttl=self.spec.lease_ttl,
            stop=self._stop,
        )

    def _source(self, spec: PipelineSpec) -> Source:
        source: Source = self._component("source", self.spec.connections[spec.source.connection], spec)
        if isinstance(source, LooksThroughSpark):
            source.attach(lambda: self._session(Work(), lambda _: None))
        return source

    def _target(self, spec: PipelineSpec) -> Target:
        target: Target = self._component("target", self.spec.connections[spec.target.connection], spec)
        return target

    def _component(self, kind: Any, connection: ConnectionOptions, spec: PipelineSpec) -> Any:
        if connection.type not in self._registry.names(kind):
            raise ConfigError(
                f"a {connection.type} connection can't be a {kind}",
                pipeline=spec.name,
                declared_at=spec.at(f"{kind}.connection"),
                hint=f"{kind}s: {', '.join(self._registry.names(kind))}",
            )
        return self._registry.get(kind, connection.type)(connection, spec, self._root)

    def _java(self, connection: ConnectionOptions) -> list[str]:
        return [str(self._root / need) if need.endswith(".jar") else need for need in connection.java]

    def _inspect(self, name: str) -> TargetState:
        return self._target(self._pipeline(name)).inspect(deep=True)

    def _session(self, work: Work, tell: Callable[[str], None]) -> SparkSession:
        """One Spark for the project, a session of its own for each run: settings must not leak between them."""
        from floodmark.spark.session import open_session, own_session, session_for
        from floodmark.spark.tuning import SESSION_SETTINGS

        if self._given_spark is not None:
            session = own_session(self._given_spark)
            for name, value in SESSION_SETTINGS.items():
                session.conf.set(name, value)
            return session
        if self._spark is None:
            self._begun = True
            self._spark = open_session(self.spec.spark, **self._spark_options(), work=work, tell=tell)
        return session_for(self._spark, self.spec.spark, work)

    def _begin_session(self, work: Work, tell: Callable[[str], None]) -> None:
        """A JVM takes its time to start: it is sent for as soon as there is something to do."""
        from floodmark.spark.session import begin_session

        if self._given_spark is None and self._spark is None:
            self._begun = True
            begin_session(self.spec.spark, **self._spark_options(), work=work, tell=tell)

    def _spark_options(self) -> dict[str, Any]:
        from floodmark.spark.place import wanted
        from floodmark.spark.session import Stay

        spec = self.spec.spark
        stays = spec.resident == "on" or (self._resident and wanted(spec.resident))
        return {
            "needs": list(dict.fromkeys(need for c in self.spec.connections.values() for need in self._java(c))),
            "log_file": self._root / ".floodmark" / "logs" / "spark.log",
            "stay": Stay(self._root, spec.idle.total_seconds()) if stays else None,
        }
