"""Ledger against target, before anything is read. The target is the truth: it is adopted, or the run refuses and names
the ways out. It never just goes on. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from floodmark.errors import Refused
from floodmark.model.ledger import PipelineState, settle
from floodmark.model.outcome import Landed, TargetState
from floodmark.model.rebuild import rebuild
from floodmark.model.spec import PipelineSpec


@dataclass(frozen=True)
class Reconciled:
    state: PipelineState
    notices: tuple[str, ...] = ()
    changed: bool = False
    """The state differs from the stored one and must be saved before anything else."""


Deep = Callable[[], TargetState]
"""The target with its whole history, asked for only where the ledger has to be rebuilt from it."""


def reconcile(spec: PipelineSpec, state: PipelineState | None, target: TargetState, deep: Deep) -> Reconciled:
    if state is not None and state.identity:
        _check_identity(spec, state.identity)
    head = None if state is None else state.head
    if state is None or (head is None and not _has_landed(state, target)):
        return _without_head(spec, state, target, deep)
    newest = target.landed[0] if head is None else _present(spec, state, target)
    if head is not None and (newest.head.ordinal, newest.head.batch) == (head.ordinal, head.batch):
        return Reconciled(state)
    if head is None or _has_landed(state, target):
        return _settled(state, newest)
    if newest.head.ordinal > head.ordinal:
        notice = f"the state is older than the target: took over its {newest.head.ordinal - head.ordinal} newer commits"
    else:
        notice = f"the target was taken back to version {newest.version}: windows loaded after it are loaded again"
    return Reconciled(_adopt(spec, state, deep()), (notice,), True)


def _has_landed(state: PipelineState, target: TargetState) -> bool:
    """The load that the last run had begun is the newest commit."""
    return state.intent is not None and bool(target.landed) and target.landed[0].head.batch == state.intent.batch


def _settled(state: PipelineState, landed: Landed) -> Reconciled:
    assert state.intent is not None  # noqa: S101 - the caller has seen it land
    settled = settle(
        state,
        state.intent,
        version=landed.version,
        table_id=landed.table_id,
        rows=landed.rows.loaded,
        at=landed.head.at,
    )
    return Reconciled(settled, ("the last run was cut off after its commit: its window counts as loaded",), True)


def _without_head(spec: PipelineSpec, state: PipelineState | None, target: TargetState, deep: Deep) -> Reconciled:
    if target.landed:
        _refuse_wiped(spec, target, "its own history")
        adopted = _adopt(spec, state, deep())
        return Reconciled(adopted, ("the state was rebuilt from the target",), True)
    if target.has_rows:
        raise Refused(
            f"the target table {spec.target.table} holds rows, but no window of this pipeline is known",
            pipeline=spec.name,
            table=spec.target.table,
            declared_at=spec.at("target"),
            hint=_ways(
                f"floodmark run {spec.name} --full-refresh     replace its rows by the source's, in one commit",
                "target: {table: …}     load into another table",
                "restore the state from a backup (floodmark state import)",
            ),
        )
    return Reconciled(state or PipelineState(pipeline=spec.name))


def _present(spec: PipelineSpec, state: PipelineState, target: TargetState) -> Landed:
    """The newest of our commits that the target holds, or a refusal."""
    assert state.head is not None  # noqa: S101 - the caller has looked
    table = spec.target.table
    if not target.exists:
        raise _gone(spec, f"the target table {table} is gone", "the state")
    if state.head.table_id is not None and target.table_id != state.head.table_id:
        again = "is not the one that was loaded: it was dropped and created again"
        raise _gone(spec, f"the target table {table} {again}", "the state")
    if not target.landed:
        raise _gone(spec, f"the target table {table} holds none of this pipeline's commits any more", "the state")
    _refuse_wiped(spec, target, "the state")
    return target.landed[0]


def _refuse_wiped(spec: PipelineSpec, target: TargetState, witness: str) -> None:
    table = spec.target.table
    if target.wiped_by is not None:
        raise _gone(spec, f"the target table {table} was emptied by somebody else ({target.wiped_by})", witness)
    if not target.has_rows and not _emptied_by_us(target):
        raise _gone(spec, f"the target table {table} is empty", witness)


def _emptied_by_us(target: TargetState) -> bool:
    """Nothing was loaded yet, or a load of ours replaced what was there by nothing."""
    changes = (landed.rows for landed in target.landed if landed.rows.loaded or landed.rows.deleted != 0)
    last = next(changes, None)
    return last is None or not last.loaded


def _gone(spec: PipelineSpec, trouble: str, witness: str) -> Refused:
    return Refused(
        f"{trouble}, while {witness} says that rows were loaded into it",
        pipeline=spec.name,
        table=spec.target.table,
        declared_at=spec.at("target"),
        hint=_ways(
            f"floodmark run {spec.name} --full-refresh     load everything again",
            "restore the table (Delta: RESTORE TABLE … TO VERSION AS OF …) and run again",
        ),
    )


def _adopt(spec: PipelineSpec, state: PipelineState | None, target: TargetState) -> PipelineState:
    rebuilt = rebuild(spec.name, target.landed, target.kept)
    assert rebuilt is not None  # noqa: S101 - the caller has seen a commit of ours
    _check_identity(spec, rebuilt.identity)
    if state is None:
        return rebuilt
    return rebuilt.but(
        revision=state.revision,
        run_count=state.run_count,
        last_run_id=state.last_run_id,
        last_run_at=state.last_run_at,
        metadata=state.metadata,
    )


def _check_identity(spec: PipelineSpec, known: dict[str, Any]) -> None:
    """Under another key or cursor the windows of the ledger mean nothing."""
    wanted = spec.identity
    source = "source.table" if spec.source.query is None else "source.query"
    paths = {"source": source, "change": "change", "target": "target.table", "keys": "target.keys"}
    for name, value in wanted.items():
        if name in known and _renamed(known[name], spec.target.renames) != _renamed(value, spec.target.renames):
            raise Refused(
                f"`{paths.get(name, f'target.{name}')}` was {_shown(known[name])} when this pipeline was loaded "
                f"and is {_shown(value)} now",
                pipeline=spec.name,
                declared_at=spec.at(paths.get(name, f"target.{name}")),
                hint=_ways(
                    "put it back as it was",
                    f"floodmark run {spec.name} --full-refresh     load everything again under the new declaration",
                    "give the pipeline another name and target, and keep the old one",
                ),
            )


def _renamed(value: Any, renames: Mapping[str, str]) -> Any:
    """A key or cursor under its new name is the same one."""
    if isinstance(value, dict):
        return {key: _renamed(inner, renames) for key, inner in value.items()}
    if isinstance(value, list):
        return [renames.get(name, name) for name in value]
    return value


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(", ".join(v) if isinstance(v, list) else str(v) for v in value.values())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _ways(*ways: str) -> str:
    return "\n".join(["choose one:", *(f"  {way}" for way in ways)])
