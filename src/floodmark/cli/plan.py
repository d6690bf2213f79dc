"""`plan`: looks at the sources and says what a run would do. Starts no Spark and changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from floodmark.cli.options import PROJECT_FILE, Debug, File, Json, Pipelines, Variables
from floodmark.cli.render_plan import plan_document, plan_table, store_lines
from floodmark.cli.session import Call, calling
from floodmark.model.event import Event, Notice

if TYPE_CHECKING:
    from floodmark.model.plan import RunPlan
    from floodmark.project import Project

Grants = Annotated[
    bool,
    typer.Option(
        "--grants",
        help="Print the rights that the sources' users need, as SQL. Opens no connection, except to list the tables of "
        "a wildcard.",
    ),
]


class Notices:
    """Says beside the plan what a run would say in between."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def emit(self, event: Event) -> None:
        if isinstance(event, Notice):
            self._call.out.error([f"! {event.pipeline}  {event.text}"])


FullRefresh = Annotated[bool, typer.Option("--full-refresh", help="Plan to load the whole table anew.")]


def plan(
    ctx: typer.Context,
    pipelines: Pipelines = None,
    full_refresh: FullRefresh = False,
    grants: Grants = False,
    file: File = PROJECT_FILE,
    var: Variables = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show what would run. Starts no Spark."""
    with calling(ctx, json=json, debug=debug) as call:
        project = call.open(file, var)
        if grants:
            show_grants(call, project, project.names(pipelines or ()))
            return
        show_plans(call, project, project.names(pipelines or ()), full_refresh=full_refresh)


def show_plans(call: Call, project: Project, names: Sequence[str], *, full_refresh: bool = False) -> None:
    from floodmark.stores import capabilities

    plans: dict[str, RunPlan | Exception] = {}
    for name in names:
        try:
            plans[name] = project.plan(name, full_refresh=full_refresh, sink=Notices(call))
        except Exception as error:  # one pipeline's trouble must not hide the others' plans
            plans[name] = error
    able = capabilities(project.store)
    call.out.document(plan_document(project.spec, plans, able))
    call.out.table(plan_table(project.spec, plans))
    call.out.lines(store_lines(able))
    for name, outcome in plans.items():
        if isinstance(outcome, Exception):
            call.tell(outcome, name)


def show_grants(call: Call, project: Project, names: Sequence[str]) -> None:
    statements: dict[str, None] = {}
    for name in names:
        try:
            statements |= dict.fromkeys(project.grants(name))
        except Exception as error:  # one pipeline's trouble must not hide the others' rights
            call.tell(error, name)
    call.out.document({"grants": list(statements)})
    call.out.lines(list(statements) or ["-- no source here keeps rights in SQL"])
