"""`backfill`: loads a range again, and leaves the mark alone."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from floodmark.cli.options import PROJECT_FILE, Debug, File, Json, Pipeline, Variables
from floodmark.cli.run import DryRun, Master, Remote, run_one
from floodmark.cli.session import calling
from floodmark.cli.stopping import stoppable

From = Annotated[
    str | None, typer.Option("--from", metavar="POSITION", help="The first cursor value; the beginning when left out.")
]
To = Annotated[
    str | None,
    typer.Option("--to", metavar="POSITION", help="Where to stop, itself left out; the mark when left out."),
]
SourceVersion = Annotated[
    int | None,
    typer.Option("--source-version", metavar="N", help="Read a Delta or Iceberg table as it was in this version."),
]
SourceTimestamp = Annotated[
    str | None,
    typer.Option("--source-timestamp", metavar="TIME", help="The same, as of this time; UTC without an offset."),
]


def backfill(
    ctx: typer.Context,
    pipeline: Pipeline,
    after: From = None,
    until: To = None,
    source_version: SourceVersion = None,
    source_timestamp: SourceTimestamp = None,
    dry_run: DryRun = False,
    master: Master = None,
    remote: Remote = None,
    file: File = PROJECT_FILE,
    var: Variables = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Load a range again, without moving the mark. Any number of times: the table is the same after each.

    In append the range is replaced in one commit; in upsert the rows are merged. The range ends at the mark at the
    latest: what lies above it is for `floodmark run`.
    """
    from floodmark.cli.plan import Notices
    from floodmark.cli.render_plan import plan_document, plan_table
    from floodmark.cli.render_run import result_document
    from floodmark.stores import capabilities

    with calling(ctx, json=json, debug=debug) as call:
        project = call.open(file, var, master=master, remote=remote)
        (name,) = project.names([pipeline])
        then: dict[str, Any] = {"source_version": source_version, "source_timestamp": source_timestamp}
        if dry_run:
            plans = {name: project.plan_backfill(name, after, until, sink=Notices(call), **then)}
            call.out.document(plan_document(project.spec, plans, capabilities(project.store)))
            call.out.table(plan_table(project.spec, plans))
            return
        go = partial(project.backfill, name, after, until, **then)
        result = stoppable(call, project, lambda: run_one(call, project, name, go))
        call.out.document(result_document(result))
