"""`state list` and `state get`: what the store keeps, readable."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from floodmark.cli.figures import UNKNOWN, show_count, show_moment, show_position
from floodmark.cli.layout import Column, Row, Table, pad

if TYPE_CHECKING:
    from floodmark.model.ledger import Intent, PipelineState

LIST = (
    Column("pipeline"),
    Column("mark"),
    Column("runs", right=True),
    Column("rows", right=True),
    Column("last run"),
    Column("revision", right=True),
)


def list_table(
    states: Mapping[str, PipelineState | None], declared: frozenset[str], now: datetime | None = None
) -> Table:
    """Declared and never run shows dashes; a state whose pipeline left the file is pointed out."""
    rows = []
    for name, state in states.items():
        if state is None:
            rows.append(Row((name, *[UNKNOWN] * (len(LIST) - 1)), ("never ran",)))
            continue
        cells = (
            name,
            show_position(state.mark),
            show_count(state.run_count),
            show_count(state.rows_total),
            show_moment(state.last_run_at, now),
            str(state.revision),
        )
        rows.append(Row(cells, () if name in declared else ("! not in the project file any more",)))
    return Table(LIST, rows)


def state_lines(state: PipelineState, now: datetime | None = None) -> list[str]:
    pairs = [
        ("mark", show_position(state.mark)),
        ("began at", "beginning" if state.start is None else str(state.start)),
        ("runs", show_count(state.run_count)),
        ("last run", " ".join(filter(None, (show_moment(state.last_run_at, now), state.last_run_id)))),
        ("rows loaded", show_count(state.rows_total)),
        ("revision", str(state.revision)),
        ("target head", _head_text(state)),
        ("declared as", _identity_text(state.identity)),
    ]
    if state.reached is not None:
        pairs.append(("reached before", f"{state.reached}, before the reset"))
    if state.intent is not None:
        pairs.append(("begun", _intent_text(state.intent)))
    if state.look is not None:
        writers = len(state.look.writers)
        pairs.append(
            ("not proven yet", f"{state.look.bound}: {writers} {'writer' if writers == 1 else 'writers'} open")
        )
    if state.ahead is not None and state.ahead.count:
        pairs.append(("loaded ahead", f"{state.ahead.count:,} rows above the mark"))
    pairs += [(f"metadata {key}", str(value)) for key, value in state.metadata.items()]
    widest = max(len(title) for title, _ in pairs)
    return [state.pipeline, *(f"  {pad(title, widest)}  {text}" for title, text in pairs)]


def _head_text(state: PipelineState) -> str:
    if state.head is None:
        return UNKNOWN
    version = "" if state.head.version is None else f", version {state.head.version}"
    return f"load {state.head.ordinal}{version}, batch {state.head.batch}"


def _intent_text(intent: Intent) -> str:
    start = "beginning" if intent.after is None else str(intent.after)
    end = "whole table" if intent.until is None else str(intent.until)
    return f"load {intent.ordinal}, {start} → {end}, batch {intent.batch}: the next run finds out whether it landed"


def _identity_text(identity: Mapping[str, Any]) -> str:
    if not identity:
        return UNKNOWN
    change = identity.get("change") or {}
    by = " ".join(filter(None, (change.get("by"), ", ".join(change.get("columns", ())))))
    keys = f" by {', '.join(identity['keys'])}" if identity.get("keys") else ""
    return f"{identity.get('source')} → {identity.get('target')}, {by}, {identity.get('mode')}{keys}"
