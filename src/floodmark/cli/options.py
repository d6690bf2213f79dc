"""Options that several commands share, so that they are spelt and explained once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from floodmark.errors import ConfigError

PROJECT_FILE = Path("floodmark.yml")

File = Annotated[Path, typer.Option("--file", "-f", metavar="FILE", help="The project file.")]
Variables = Annotated[
    list[str] | None, typer.Option("--var", metavar="NAME=VALUE", help="Set a ${NAME} of the file. Repeatable.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout and nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Pipelines = Annotated[
    list[str] | None, typer.Argument(metavar="PIPELINE", help="Names or wildcards; all when none is given.")
]
Pipeline = Annotated[str, typer.Argument(metavar="PIPELINE", help="Name of a pipeline.")]


def parse_variables(given: Sequence[str] | None) -> dict[str, str]:
    variables: dict[str, str] = {}
    for number, text in enumerate(given or (), start=1):
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            # Not echoed: the value may be a secret.
            which = "--var" if len(given or ()) == 1 else f"--var number {number}"
            raise ConfigError(f"{which} is not NAME=VALUE", hint="write it like --var REGION=eu")
        variables[name.strip()] = value
    return variables
