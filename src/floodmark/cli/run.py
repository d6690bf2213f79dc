"""`run`: moves what changed, pipeline after pipeline, and says what came of each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from floodmark.cli.failure import exit_code_of_result
from floodmark.cli.options import PROJECT_FILE, Debug, File, Json, Pipelines, Variables
from floodmark.cli.plan import show_plans
from floodmark.cli.session import Call, calling
from floodmark.cli.stopping import stoppable
from floodmark.errors import Stopped

if TYPE_CHECKING:
    from floodmark.model.outcome import RunResult
    from floodmark.project import Project

UntilComplete = Annotated[bool, typer.Option("--until-complete", help="Go on until no slice is left.")]
MaxSlices = Annotated[
    int | None, typer.Option("--max-slices", min=1, metavar="N", help="Stop after N slices; the next run goes on.")
]
FullRefresh = Annotated[bool, typer.Option("--full-refresh", help="Load the whole table anew, replacing the target's.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask before a full refresh.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show the plan.")]
Master = Annotated[str | None, typer.Option("--master", metavar="URL", help="Spark master, e.g. spark://host:7077.")]
Remote = Annotated[
    str | None, typer.Option("--remote", metavar="URL", help="Spark Connect address, e.g. sc://host:15002.")
]


def run(
    ctx: typer.Context,
    pipelines: Pipelines = None,
    until_complete: UntilComplete = False,
    max_slices: MaxSlices = None,
    full_refresh: FullRefresh = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    master: Master = None,
    remote: Remote = None,
    file: File = PROJECT_FILE,
    var: Variables = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Load what changed since last time, exactly once.

    Exit codes: 0 done or nothing new; 1 a run failed; 2 usage or configuration; 3 another runner holds the pipeline.
    With several pipelines, all are run, and 1 comes before 2 before 3.
    """
    with calling(ctx, json=json, debug=debug) as call:
        project = call.open(file, var, master=master, remote=remote)
        names = project.names(pipelines or ())
        if dry_run:
            show_plans(call, project, names, full_refresh=full_refresh)
            return
        if full_refresh and not yes:
            _confirm(names)
        run_all(call, project, names, until_complete=until_complete, max_slices=max_slices, full_refresh=full_refresh)


def run_all(
    call: Call,
    project: Project,
    names: Sequence[str],
    *,
    until_complete: bool = False,
    max_slices: int | None = None,
    full_refresh: bool = False,
) -> None:
    from floodmark.cli.render_run import result_document, summary_table

    results: list[RunResult] = []

    def each() -> None:
        for name in names:
            go = project.run_until_complete if until_complete else project.run
            result = run_one(call, project, name, partial(go, name, max_slices=max_slices, full_refresh=full_refresh))
            results.append(result)
            call.session.results.append(result)
            # A document after each, so that an interrupt still leaves what was done until then.
            documents = [result_document(done) for done in results]
            documents[-1]["keep"] = project.to_keep()
            call.out.document(documents)
            if isinstance(result.failure, Stopped):
                return

    stoppable(call, project, each)
    if len(results) > 1:
        call.out.line()
        call.out.table(summary_table(results))
    if not names:
        call.out.document([])
        call.out.line("no pipelines in the project file")


def run_one(call: Call, project: Project, name: str, go: Callable[..., RunResult]) -> RunResult:
    """Shows it while it works, and what came of it."""
    from floodmark.cli.progress import progress_for
    from floodmark.cli.render_run import closing_lines

    sink = progress_for(call.out)
    try:
        result = go(sink=sink)
    except Exception as error:  # a run returns its failures; should one be raised, the other pipelines still run
        result = _failed(name, error)
    finally:
        sink.close()
    if not result.success:
        _tell_failure(call, result)
        return result
    appends = name in project.spec.pipelines and project.spec.pipelines[name].target.appends
    call.out.lines(closing_lines(result, appends=appends, shown=sink.noticed))
    return result


def _tell_failure(call: Call, result: RunResult) -> None:
    if result.failure is not None:
        call.tell(result.failure, result.pipeline)
        return
    call.codes.append(exit_code_of_result(result))
    call.out.error(f"✗ {result.pipeline}  {text}" for text in result.errors or ("failed",))


def _failed(name: str, error: Exception) -> RunResult:
    from floodmark.model.outcome import RunResult

    return RunResult(name, "", datetime.now(UTC), success=False, errors=(str(error),), failure=error)


def _confirm(names: Sequence[str]) -> None:
    """Only a person can answer: a scheduler that passes the flag has meant it."""
    if sys.stdin.isatty() and sys.stderr.isatty():
        tables = ", ".join(names)
        typer.confirm(f"Load {tables} from the beginning and replace what the target holds?", abort=True, err=True)
