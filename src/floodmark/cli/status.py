"""`status` and `history`: where pipelines stand and what they did. Start no Spark and change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from floodmark.cli.options import PROJECT_FILE, Debug, File, Json, Pipeline, Pipelines, Variables
from floodmark.cli.render_status import (
    gap_lines,
    history_document,
    runs_table,
    status_document,
    status_table,
    windows_table,
)
from floodmark.cli.session import Call, calling

if TYPE_CHECKING:
    from floodmark.model.outcome import PipelineStatus
    from floodmark.project import Project

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many runs to show.")]


def status(
    ctx: typer.Context,
    pipelines: Pipelines = None,
    file: File = PROJECT_FILE,
    var: Variables = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show mark, lag, last run and health. Times are UTC."""
    with calling(ctx, json=json, debug=debug) as call:
        project = call.open(file, var)
        statuses: dict[str, PipelineStatus | Exception] = {}
        for name in project.names(pipelines or ()):
            try:
                statuses[name] = project.status(name)
            except Exception as error:  # one pipeline's trouble must not hide the others' status
                statuses[name] = error
        call.out.document(status_document(statuses))
        call.out.table(status_table(statuses))
        for name, outcome in statuses.items():
            if isinstance(outcome, Exception):
                call.tell(outcome, name)


def history(
    ctx: typer.Context,
    pipeline: Pipeline,
    limit: Limit = 20,
    file: File = PROJECT_FILE,
    var: Variables = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show runs and ledger of a pipeline. Times are UTC."""
    with calling(ctx, json=json, debug=debug) as call:
        project = call.open(file, var)
        documents = [_show_history(call, project, name, limit) for name in project.names([pipeline])]
        call.out.document(documents[0] if len(documents) == 1 else documents)


def _show_history(call: Call, project: Project, name: str, limit: int) -> dict[str, Any]:
    records, state = project.history(name, limit), project.state(name)
    if records:
        call.out.line(f"runs of {name}")
        call.out.table(runs_table(records))
    elif state is None:
        call.out.line(f"{name} never ran: floodmark run {name}")
    else:
        call.out.line(f"! {name}  this state store keeps no runs; the ledger is all there is")
    if state is not None and state.windows:
        call.out.line()
        call.out.line(f"windows of {name}")
        call.out.table(windows_table(state))
        call.out.lines(gap_lines(state))
    return history_document(name, records, state)
