"""A project that answers from fixed values, put where the commands look for the real one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pytest

from floodmark.cli.main import main
from floodmark.errors import ConfigError
from floodmark.model.event import Event
from floodmark.model.ledger import PipelineState
from floodmark.model.outcome import PipelineStatus, Rows, RunRecord, RunResult
from floodmark.model.plan import Guarantee, RunPlan
from floodmark.model.position import Position
from floodmark.model.spec import (
    ConnectionOptions,
    PipelineSpec,
    ProjectSpec,
    SequenceSpec,
    SourceSpec,
    TimestampSpec,
)
from floodmark.model.target import TargetSpec
from floodmark.model.window import Window
from floodmark.ports import EventSink
from floodmark.registry import Registry

T = TypeVar("T")


def at(text: str) -> Position:
    return Position.before(datetime.fromisoformat(text).replace(tzinfo=UTC))


MARK = at("2026-11-15 10:00:41")
EARLIER = at("2026-11-14 09:12:03")
STARTED = datetime(2026, 11, 15, 10, 3, tzinfo=UTC)


def a_plan(name: str = "orders", **changes: Any) -> RunPlan:
    fields: dict[str, Any] = {
        "pipeline": name,
        "after": EARLIER,
        "proven": MARK,
        "until": MARK,
        "rows": 9_986,
        "rows_ahead": 0,
        "rows_waiting": 0,
        "slices": 1,
        "guarantee": Guarantee("fenced"),
    }
    return RunPlan(**(fields | changes))


def a_result(name: str = "orders", **changes: Any) -> RunResult:
    fields: dict[str, Any] = {
        "pipeline": name,
        "run_id": "r1",
        "started_at": STARTED,
        "success": True,
        "rows": Rows(9_986, 2_002, 7_984, 0),
        "window": (EARLIER, MARK),
        "mark": MARK,
        "slices": 1,
        "seconds": {"read": 0.4, "load": 2.2},
        "guarantee": "fenced",
        "version": 42,
    }
    return RunResult(**(fields | changes))


def a_record(name: str = "orders", **changes: Any) -> RunRecord:
    fields: dict[str, Any] = {
        "run_id": "r1",
        "pipeline": name,
        "started_at": STARTED,
        "seconds": 2.6,
        "success": True,
        "rows_read": 9_986,
        "rows_inserted": 2_002,
        "rows_updated": 7_984,
        "rows_deleted": 0,
        "slices": 1,
        "after": EARLIER,
        "mark": MARK,
        "version": 42,
        "guarantee": "fenced",
    }
    return RunRecord(**(fields | changes))


def a_state(name: str = "orders", **changes: Any) -> PipelineState:
    window = Window(after=None, until=MARK, state="committed", batch="b1", ordinal=1, rows=9_986, at=STARTED)
    fields: dict[str, Any] = {
        "pipeline": name,
        "revision": 3,
        "windows": (window,),
        "run_count": 2,
        "rows_total": 9_986,
    }
    return PipelineState(**(fields | changes))


class FakeStore:
    def __init__(self) -> None:
        self.states: dict[str, PipelineState] = {}

    def get(self, pipeline: str) -> PipelineState | None:
        return self.states.get(pipeline)

    def delete(self, pipeline: str) -> bool:
        return self.states.pop(pipeline, None) is not None

    def list_pipelines(self) -> list[str]:
        return sorted(self.states)


@dataclass
class FakeProject:
    spec: ProjectSpec
    plans: dict[str, RunPlan | Exception] = field(default_factory=dict)
    results: dict[str, RunResult | BaseException] = field(default_factory=dict)
    statuses: dict[str, PipelineStatus | Exception] = field(default_factory=dict)
    records: list[RunRecord] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    store: FakeStore = field(default_factory=FakeStore)
    on_run: Callable[[], None] = lambda: None
    closed: bool = False
    kept: dict[str, str] = field(default_factory=dict)

    def to_keep(self) -> dict[str, str]:
        return self.kept

    def names(self, patterns: Sequence[str] = ()) -> list[str]:
        known = list(self.spec.pipelines)
        for pattern in patterns:
            if not any(fnmatch(name, pattern) for name in known):
                raise ConfigError(f"there is no pipeline {pattern}", hint=f"did you mean {known[0]}?")
        return [name for name in known if not patterns or any(fnmatch(name, pattern) for pattern in patterns)]

    def plan(self, name: str, *, full_refresh: bool = False, sink: EventSink | None = None) -> RunPlan:
        self.calls.append(("plan", name, full_refresh))
        for event in self.events:
            if sink is not None:
                sink.emit(event)
        return _answer(self.plans.get(name, a_plan(name)))

    def run(
        self,
        name: str,
        *,
        full_refresh: bool = False,
        max_slices: int | None = None,
        sink: EventSink | None = None,
    ) -> RunResult:
        self.calls.append(("run", name, full_refresh, max_slices))
        self.on_run()
        for event in self.events:
            if sink is not None:
                sink.emit(event)
        return _answer(self.results.get(name, a_result(name)))

    def run_until_complete(self, name: str, **options: Any) -> RunResult:
        self.calls.append(("until complete", name))
        return self.run(name, **options)

    def status(self, name: str) -> PipelineStatus:
        return _answer(self.statuses[name])

    def history(self, name: str, limit: int = 20) -> list[RunRecord]:
        return [record for record in self.records if record.pipeline == name][:limit]

    def state(self, name: str) -> PipelineState | None:
        return self.store.get(name)

    def set_mark(self, name: str, value: str) -> PipelineState:
        self.calls.append(("set", name, value))
        return a_state(name, start=at(value), windows=())

    def reset(self, name: str, to: str | None = None) -> PipelineState:
        self.calls.append(("reset", name, to))
        return a_state(name, start=None if to is None else at(to), windows=())

    def close(self) -> None:
        self.closed = True


def _answer(answer: T | BaseException) -> T:
    if isinstance(answer, BaseException):
        raise answer
    return answer


def a_spec(secrets: tuple[str, ...] = ()) -> ProjectSpec:
    orders = PipelineSpec(
        name="orders",
        source=SourceSpec(connection="shop", table="public.orders"),
        change=TimestampSpec(by="timestamp", column="updated_at"),
        target=TargetSpec(connection="lake", table="orders", mode="upsert", keys=("order_id",)),
    )
    events = PipelineSpec(
        name="events",
        source=SourceSpec(connection="shop", table="public.events"),
        change=SequenceSpec(by="sequence", column="event_id"),
        target=TargetSpec(connection="lake", table="events", mode="append"),
    )
    connections = {"shop": ConnectionOptions(type="postgres"), "lake": ConnectionOptions(type="delta")}
    pipelines = {"orders": orders, "events": events}
    return ProjectSpec(root=".", connections=connections, pipelines=pipelines, secrets=secrets)


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


@dataclass
class Fakes:
    """What `floodmark.opening` and `floodmark.stores` answer, the way to call the command line on it, and builders,
    for test files can't import a conftest."""

    at = staticmethod(at)
    plan = staticmethod(a_plan)
    result = staticmethod(a_result)
    record = staticmethod(a_record)
    state = staticmethod(a_state)
    spec = staticmethod(a_spec)
    MARK, EARLIER, STARTED = MARK, EARLIER, STARTED

    project: FakeProject
    capsys: pytest.CaptureFixture[str]
    load_error: Exception | None = None
    capabilities: dict[str, str | None] = field(default_factory=dict)
    loads: list[dict[str, Any]] = field(default_factory=list)
    imported: list[tuple[dict[str, Any], bool]] = field(default_factory=list)

    def load(self, path: Path, **options: Any) -> FakeProject:
        self.loads.append({"path": path, **options})
        if self.load_error is not None:
            raise self.load_error
        return self.project

    def validate(self, path: Path, **options: Any) -> ProjectSpec:
        return self.load(path, **options).spec

    def call(self, *argv: str, registry: Registry | None = None) -> Said:
        code = main(list(argv), registry)
        said = self.capsys.readouterr()
        return Said(code, said.out, said.err)


def _import_state(fakes: Fakes) -> Callable[..., list[str]]:
    def import_state(_store: FakeStore, data: dict[str, Any], *, overwrite: bool = False) -> list[str]:
        fakes.imported.append((data, overwrite))
        return ["orders"]

    return import_state


def _export_state(store: FakeStore) -> Mapping[str, Any]:
    return {"pipelines": [state.to_dict() for state in store.states.values()]}


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fakes:
    fakes = Fakes(FakeProject(a_spec()), capsys)
    opening, stores = ModuleType("floodmark.opening"), ModuleType("floodmark.stores")
    opening.__dict__.update(load=fakes.load, validate=fakes.validate, schema=lambda _registry=None: {"type": "object"})
    stores.__dict__.update(
        export_state=_export_state, import_state=_import_state(fakes), capabilities=lambda _store: fakes.capabilities
    )
    monkeypatch.setitem(sys.modules, "floodmark.opening", opening)
    monkeypatch.setitem(sys.modules, "floodmark.stores", stores)
    return fakes
