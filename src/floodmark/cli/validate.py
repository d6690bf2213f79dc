"""`validate` and `schema`: the file by itself, with no connection and no Java."""

from __future__ import annotations

import json as json_form
from typing import TYPE_CHECKING

import typer

from floodmark.cli.failure import error_document
from floodmark.cli.options import PROJECT_FILE, Debug, File, Json, Variables
from floodmark.cli.session import calling
from floodmark.errors import FloodmarkError

if TYPE_CHECKING:
    from floodmark.model.spec import ProjectSpec


def validate(
    ctx: typer.Context, file: File = PROJECT_FILE, var: Variables = None, json: Json = False, debug: Debug = False
) -> None:
    """Check the project file, offline.

    Every mistake is told with its line and a hint. No connection is opened and no Java is needed.
    """
    with calling(ctx, json=json, debug=debug) as call:
        from floodmark.opening import validate as validate_file

        try:
            spec = validate_file(file, variables=call.variables(var), registry=call.session.registry)
        except FloodmarkError as error:
            call.tell(error)
            call.out.document({"valid": False, "error": error_document(error)})
            return
        call.out.redact.learn(spec.secrets)
        call.out.document({"valid": True, "pipelines": list(spec.pipelines), "connections": list(spec.connections)})
        call.out.line(f"✓ {file}  {_counted(spec)}")


def schema(ctx: typer.Context, debug: Debug = False) -> None:
    """Print the JSON Schema of the project file, for editors."""
    with calling(ctx, json=False, debug=debug) as call:
        from floodmark.opening import schema as project_schema

        call.out.line(json_form.dumps(project_schema(call.session.registry), indent=2))


def _counted(spec: ProjectSpec) -> str:
    pipelines, connections = len(spec.pipelines), len(spec.connections)
    names = ", ".join(spec.pipelines)
    return (
        f"{pipelines} {'pipeline' if pipelines == 1 else 'pipelines'} ({names}), "
        f"{connections} {'connection' if connections == 1 else 'connections'}"
    )
