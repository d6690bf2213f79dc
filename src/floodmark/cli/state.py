"""`state`: what the store keeps of each pipeline: read it, move it, carry it elsewhere."""

from __future__ import annotations

import json as json_form
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floodmark.cli.figures import show_position
from floodmark.cli.options import PROJECT_FILE, Debug, File, Json, Pipeline, Variables
from floodmark.cli.render_state import list_table, state_lines
from floodmark.cli.render_status import gap_lines, windows_table
from floodmark.cli.session import Call, calling
from floodmark.errors import ConfigError

if TYPE_CHECKING:
    from floodmark.model.ledger import PipelineState
    from floodmark.model.position import Position
    from floodmark.project import Project

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Read and move what the state store keeps.")

To = Annotated[str | None, typer.Option("--to", metavar="POSITION", help="Where to read from. The beginning if unset.")]
Mark = Annotated[str, typer.Option("--mark", metavar="POSITION", help="The new mark: a timestamp, number or text.")]
Destination = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here, not to stdout.")]
Import = Annotated[Path, typer.Argument(metavar="FILE", help="An export; - reads stdin.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace states that are there already.")]


@app.command("list")
def list_states(
    ctx: typer.Context, file: File = PROJECT_FILE, var: Variables = None, json: Json = False, debug: Debug = False
) -> None:
    """List every pipeline in the file or in the store."""
    with calling(ctx, json=json, debug=debug) as call:
        project = call.open(file, var)
        declared = project.names()
        stored = [name for name in project.store.list_pipelines() if name not in declared]
        states = {name: project.store.get(name) for name in (*declared, *stored)}
        call.out.document({name: None if state is None else state.to_dict() for name, state in states.items()})
        call.out.table(list_table(states, frozenset(declared)))


@app.command("get")
def get(
    ctx: typer.Context,
    pipeline: Pipeline,
    file: File = PROJECT_FILE,
    var: Variables = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show one pipeline's state and the windows of its ledger."""
    with calling(ctx, json=json, debug=debug) as call:
        project = call.open(file, var)
        state = _stored(project, pipeline)
        call.out.document(None if state is None else state.to_dict())
        if state is None:
            call.out.line(f"{pipeline} has no state: it never ran")
            return
        call.out.lines(state_lines(state))
        if state.windows:
            call.out.line()
            call.out.table(windows_table(state))
        call.out.lines(gap_lines(state))


@app.command("set")
def set_mark(
    ctx: typer.Context,
    pipeline: Pipeline,
    mark: Mark,
    file: File = PROJECT_FILE,
    var: Variables = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Move the mark to a position: the next run reads from there."""
    with calling(ctx, json=json, debug=debug) as call:
        project = call.open(file, var)
        before = _mark(project.state(pipeline))
        _show_moved(call, before, project.set_mark(pipeline, mark))


@app.command("reset")
def reset(
    ctx: typer.Context,
    pipeline: Pipeline,
    to: To = None,
    file: File = PROJECT_FILE,
    var: Variables = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Read again from the beginning, or from a position. What the target holds stays until then."""
    with calling(ctx, json=json, debug=debug) as call:
        project = call.open(file, var)
        before = _mark(project.state(pipeline))
        _show_moved(call, before, project.reset(pipeline, to))


@app.command("delete")
def delete(
    ctx: typer.Context,
    pipeline: Pipeline,
    file: File = PROJECT_FILE,
    var: Variables = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Forget a pipeline. Its target stays, and a later run finds the mark again from the target's own head."""
    with calling(ctx, json=json, debug=debug) as call:
        project = call.open(file, var)
        _stored(project, pipeline)
        deleted = project.store.delete(pipeline)
        call.out.document({"pipeline": pipeline, "deleted": deleted})
        call.out.line(f"✓ {pipeline}  state deleted" if deleted else f"{pipeline} has no state: nothing to delete")


@app.command("export")
def export(
    ctx: typer.Context,
    output: Destination = None,
    file: File = PROJECT_FILE,
    var: Variables = None,
    debug: Debug = False,
) -> None:
    """Write all states as one JSON document."""
    with calling(ctx, json=output is None, debug=debug) as call:
        from floodmark.stores import export_state

        data = export_state(call.open(file, var).store)
        if output is None:
            call.out.document(data)
            return
        _write_whole(output, json_form.dumps(data, indent=2) + "\n")
        call.out.line(f"✓ state written to {output}")


@app.command("import")
def import_(
    ctx: typer.Context,
    source: Import,
    overwrite: Overwrite = False,
    file: File = PROJECT_FILE,
    var: Variables = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Read states from an export. One that is there already is an error unless --overwrite is given."""
    with calling(ctx, json=json, debug=debug) as call:
        from floodmark.stores import import_state

        names = import_state(call.open(file, var).store, _read_export(source), overwrite=overwrite)
        call.out.document({"pipelines": names})
        call.out.line(f"✓ {source}  state of {', '.join(names) or 'nothing'} taken over")


def _stored(project: Project, name: str) -> PipelineState | None:
    """A state may have outlived its pipeline's place in the file; a name that is nowhere is a misspelling."""
    state = project.store.get(name)
    if state is None:
        project.names([name])
    return state


def _mark(state: PipelineState | None) -> Position | None:
    return None if state is None else state.mark


def _show_moved(call: Call, before: Position | None, state: PipelineState) -> None:
    call.out.document(state.to_dict())
    to = "the beginning" if state.mark is None else str(state.mark)
    call.out.line(f"✓ {state.pipeline}  the next run reads from {to}   (the mark was {show_position(before)})")
    call.out.lines(gap_lines(state))


def _read_export(source: Path) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if str(source) == "-" else source.read_text(encoding="utf-8")
        data = json_form.loads(text)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{source} can't be read as an export: {error}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{source} is not an export", hint="write one with: floodmark state export -o FILE")
    return data


def _write_whole(path: Path, text: str) -> None:
    """Beside it first, then renamed: a full disk leaves the old export as it was."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise ConfigError(f"{path} can't be written: {error.strerror}") from error
