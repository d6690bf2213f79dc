"""`run`: the headline before, the closing line after, and the summary of several."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any

from floodmark.cli.failure import error_document, first_words
from floodmark.cli.figures import UNKNOWN, loaded_rows, show_count, show_position, show_rows, show_seconds
from floodmark.cli.layout import Column, Row, Table
from floodmark.cli.render_plan import position_form, show_window, waiting_text
from floodmark.model.window import MAIN

if TYPE_CHECKING:
    from floodmark.model.outcome import RunResult
    from floodmark.model.plan import RunPlan

SUMMARY = (
    Column("pipeline"),
    Column("result"),
    Column("rows", right=True),
    Column("seconds", right=True),
    Column("mark"),
)


def headline(plan: RunPlan) -> str:
    about = f"~{show_rows(plan.rows)}" if plan.rows is not None else "rows unknown"
    slices = f"  {plan.slices} slices" if plan.slices > 1 else ""
    return f"{plan.pipeline}  {show_window(plan)}  {about}{slices}  {plan.guarantee}"


def closing_lines(result: RunResult, *, appends: bool = False, shown: Sequence[str] = ()) -> list[str]:
    """For a run that went well. `shown` are notices that were printed while it ran."""
    lines = [f"! {result.pipeline}  {notice}" for notice in result.notices if notice not in shown]
    if result.nothing_new:
        nothing = "nothing new" if result.lane == MAIN else "no rows in this range"
        lines.append(f"✓ {result.pipeline}  {nothing} (checked in {show_seconds(result.total_seconds)})")
    else:
        ends = [f"✓ {result.pipeline}  {rows_text(result, appends=appends)} in {show_seconds(result.total_seconds)}"]
        if result.mark is not None:
            stays = "mark" if result.lane == MAIN else "the mark stays at"
            ends.append(f"{stays} {result.mark}")
        if result.version is not None:
            ends.append(f"version {result.version}")
        lines.append("   ".join(ends))
    if result.rows_waiting:
        lines.append(f"  {waiting_text(result.rows_waiting, result.guarantee)}")
    if not result.complete:
        lines.append(f"  slices are left: floodmark run {result.pipeline} --until-complete takes them all")
    return lines


def rows_text(result: RunResult, *, appends: bool = False) -> str:
    """Kinds that the target doesn't report are left out, rather than shown as zero."""
    rows = result.rows
    kinds = [("updated", rows.updated), ("inserted", rows.inserted), ("deleted", rows.deleted)]
    if appends:
        kinds = [(kind, count) for kind, count in kinds if kind == "inserted" or count]
    known = [f"{show_count(count)} {kind}" for kind, count in kinds if count is not None]
    if known:
        return ", ".join(known)
    return f"{show_count(rows.read)} read" if rows.read is not None else f"{UNKNOWN} rows"


def summary_table(results: Sequence[RunResult]) -> Table:
    rows = []
    for result in results:
        outcome = "✗ failed" if not result.success else "✓ nothing new" if result.nothing_new else "✓ done"
        cells = (
            result.pipeline,
            outcome,
            show_count(loaded_rows(result.rows, nothing_new=result.success and result.nothing_new)),
            show_seconds(result.total_seconds if result.seconds else None),
            show_position(result.mark),
        )
        rows.append(Row(cells, () if result.success else (_failure_text(result),)))
    return Table(SUMMARY, rows)


def result_document(result: RunResult) -> dict[str, Any]:
    hint = getattr(result.failure, "hint", None)
    return {
        "pipeline": result.pipeline,
        "run_id": result.run_id,
        "lane": result.lane,
        "started_at": result.started_at.astimezone(UTC).isoformat(),
        "success": result.success,
        "nothing_new": result.nothing_new,
        "complete": result.complete,
        "rows_loaded": result.rows_loaded,
        "rows": {
            "read": result.rows.read,
            "inserted": result.rows.inserted,
            "updated": result.rows.updated,
            "deleted": result.rows.deleted,
        },
        "rows_waiting": result.rows_waiting,
        "window": {"after": position_form(result.window[0]), "until": position_form(result.window[1])},
        "mark": position_form(result.mark),
        "version": result.version,
        "slices": result.slices,
        "guarantee": result.guarantee,
        "seconds": {"total": result.total_seconds, **result.seconds},
        "notices": list(result.notices),
        "errors": list(result.errors),
        "hints": [hint] if hint else [],
        "failure": None if result.failure is None else error_document(result.failure, result.pipeline),
        "metadata": dict(result.metadata),
    }


def _failure_text(result: RunResult) -> str:
    if result.failure is not None:
        return first_words(result.failure)
    return next((line for text in result.errors for line in text.splitlines() if line.strip()), "failed")
