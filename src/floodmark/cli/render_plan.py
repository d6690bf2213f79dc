"""`plan`: what would run, how sure it is, and what would make it surer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from floodmark.cli.failure import error_document, first_words
from floodmark.cli.figures import UNKNOWN, show_count, show_position, show_rows
from floodmark.cli.layout import Column, Row, Table

if TYPE_CHECKING:
    from floodmark.model.plan import RunPlan
    from floodmark.model.position import Position
    from floodmark.model.spec import ProjectSpec

COLUMNS = (
    Column("pipeline"),
    Column("change"),
    Column("window"),
    Column("~rows", right=True),
    Column("slices", right=True),
    Column("guarantee"),
)
STRONG = ("fenced", "log", "exact")


def plan_table(spec: ProjectSpec, plans: Mapping[str, RunPlan | Exception]) -> Table:
    changes = _changes(spec, list(plans))
    rows = []
    for name, plan in plans.items():
        if isinstance(plan, Exception):
            rows.append(Row((name, changes[name], *[UNKNOWN] * 4), (f"✗ {first_words(plan)}",)))
            continue
        # Rows that a look recognises as loaded are there, but nothing would move.
        moving, slices = (0, 0) if plan.nothing_new else (plan.rows, plan.slices)
        cells = (show_window(plan), show_count(moving), str(slices), str(plan.guarantee))
        rows.append(Row((name, changes[name], *cells), tuple(plan_notes(plan))))
    return Table(COLUMNS, rows)


def show_window(plan: RunPlan) -> str:
    if plan.nothing_new:
        return f"nothing new since {show_position(plan.after)}" if plan.after else "nothing there yet"
    if plan.full or plan.after is plan.until is None:
        return "whole table"
    start = "from the beginning" if plan.after is None else str(plan.after)
    if plan.first:
        start = "first load" if plan.after is None else f"first load from {start}"
    return f"{start} → {show_position(plan.until)}"


def plan_notes(plan: RunPlan) -> list[str]:
    notes = []
    weak = plan.guarantee.name not in STRONG
    if plan.guarantee.reason or weak:
        notes.append(f"⚠ {plan.guarantee.caveat or 'rows that are committed late can be missed'}")
    if plan.rows_waiting:
        notes.append(f"! {waiting_text(plan.rows_waiting, str(plan.guarantee))}")
    return notes


def waiting_text(rows: int, guarantee: str) -> str:
    verb = "waits" if rows == 1 else "wait"
    name, _, detail = guarantee.partition(" ")
    if name == "delayed" and detail:
        return f"{show_rows(rows)} {verb}: younger than {detail}"
    return f"{show_rows(rows)} {verb} for open transactions that may still write below; a later run takes them"


def store_lines(capabilities: Mapping[str, str | None]) -> list[str]:
    """What the chosen state store can't do; None means that it can."""
    return [f"! state store: {reason}" for reason in capabilities.values() if reason]


def plan_document(
    spec: ProjectSpec, plans: Mapping[str, RunPlan | Exception], capabilities: Mapping[str, str | None]
) -> dict[str, Any]:
    return {
        "pipelines": [_plan_form(spec, name, plan) for name, plan in plans.items()],
        "state": dict(capabilities),
    }


def position_form(position: Position | None) -> dict[str, Any] | None:
    return None if position is None else position.to_json()


def _plan_form(spec: ProjectSpec, name: str, plan: RunPlan | Exception) -> dict[str, Any]:
    change = spec.pipelines[name].identity["change"] if name in spec.pipelines else None
    if isinstance(plan, Exception):
        return {"pipeline": name, "change": change, "error": error_document(plan, name)}
    guarantee = plan.guarantee
    return {
        "pipeline": name,
        "change": change,
        "window": {"after": position_form(plan.after), "until": position_form(plan.until)},
        "proven": position_form(plan.proven),
        "rows": plan.rows,
        "rows_waiting": plan.rows_waiting,
        "slices": plan.slices,
        "first": plan.first,
        "full": plan.full,
        "nothing_new": plan.nothing_new,
        "guarantee": {
            "name": guarantee.name,
            "detail": guarantee.detail,
            "reason": guarantee.reason,
            "fix": guarantee.fix,
        },
    }


def _changes(spec: ProjectSpec, names: Sequence[str]) -> dict[str, str]:
    """`timestamp updated_at`, the columns under each other."""
    forms = {name: spec.pipelines[name].identity["change"] for name in names if name in spec.pipelines}
    widest = max((len(form["by"]) for form in forms.values() if form.get("columns")), default=0)
    shown = dict.fromkeys(names, UNKNOWN)
    for name, form in forms.items():
        columns = ", ".join(form.get("columns", ()))
        shown[name] = f"{form['by']:<{widest}} {columns}" if columns else f"{form['by']} (full refresh)"
    return shown
