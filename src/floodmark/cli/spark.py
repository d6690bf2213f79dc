"""`spark`: the warm Spark that runs leave behind for the next one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from floodmark.cli.layout import Column, Row, Table
from floodmark.cli.options import PROJECT_FILE, Debug, File, Json
from floodmark.cli.session import calling

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="See and end the warm Spark that runs leave behind."
)

Everywhere = Annotated[bool, typer.Option("--all", help="Of all your projects, not only this one.")]
Now = Annotated[bool, typer.Option("--now", help="Don't wait for a run that uses it: that run fails.")]


@app.command("status")
def status(ctx: typer.Context, json: Json = False, debug: Debug = False) -> None:
    """List the warm Sparks of all your projects: whether a run uses them, when they end, where their log is."""
    from floodmark.spark.resident import residents

    with calling(ctx, json=json, debug=debug) as call:
        found = list(residents())
        call.out.document(found)
        if not found:
            call.out.line("no warm Spark; a run leaves one behind where `spark: {resident: …}` allows it")
            return
        call.out.table(_table(found))


@app.command("stop")
def stop(
    ctx: typer.Context,
    everywhere: Everywhere = False,
    now: Now = False,
    file: File = PROJECT_FILE,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """End the warm Spark of this project. One that a run uses ends after it."""
    from floodmark.spark.resident import stop as stop_residents

    with calling(ctx, json=json, debug=debug) as call:
        asked = stop_residents(None if everywhere else file.resolve().parent, now=now)
        call.out.document({"stopped": len(asked), "after_runs": 0 if now else sum(asked)})
        if not asked:
            call.out.line("there is no warm Spark to stop")
        for runs in asked:
            if not runs:
                call.out.line("✓ stopped")
            elif now:
                call.out.line("✓ stopped; the run that used it fails, and the next one makes it good")
            else:
                call.out.line("✓ ends after the run that uses it")


def _table(found: Sequence[dict[str, Any]]) -> Table:
    columns = ("project", "process", "java", "since", "runs", "state", "log")
    return Table(tuple(Column(title) for title in columns), [Row(_cells(told)) for told in found])


def _cells(told: dict[str, Any]) -> tuple[str, ...]:
    from floodmark.model.duration import show_duration

    since = datetime.fromtimestamp(told["started"], UTC)
    users = ", ".join(map(str, told["busy"]))
    left = show_duration(timedelta(seconds=round(told["ends_in"])))
    state = f"used by process {users}" if users else f"idle, ends in {left}"
    return (
        told["project"],
        str(told["pid"]),
        str(told["java"]),
        f"{since:%Y-%m-%d %H:%M:%S}",
        str(told["runs"]),
        state,
        told["log"],
    )
