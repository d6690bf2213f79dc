"""The `floodmark` command."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from floodmark import __version__
from floodmark.cli.options import Debug
from floodmark.cli.session import Session

if TYPE_CHECKING:
    from floodmark.registry import Registry

COMMANDS = {
    "demo": "demo:demo",
    "validate": "validate:validate",
    "plan": "plan:plan",
    "run": "run:run",
    "backfill": "backfill:backfill",
    "status": "status:status",
    "history": "status:history",
    "state": "state:app",
    "spark": "spark:app",
    "schema": "validate:schema",
}
"""By name, in the order of the help: module and function, or an app of its own."""


def app_for(argv: Sequence[str]) -> typer.Typer:
    """With the command that is asked for, or all of them: each costs its imports and a translation of its options."""
    # Plain help and plain errors: they read the same in a terminal and in a log, and cost no import of rich.
    app = typer.Typer(
        name="floodmark",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(floodmark)
    asked = next((word for word in argv if not word.startswith("-")), None)
    for name in [asked] if asked in COMMANDS else COMMANDS:
        module, _, part = COMMANDS[name].partition(":")
        command = getattr(import_module(f"floodmark.cli.{module}"), part)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command()(command)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"floodmark {__version__}")
        raise typer.Exit


def floodmark(
    ctx: typer.Context,
    debug: Debug = False,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Incremental pipelines on Spark: move what changed, exactly once.

    Exit codes: 0 done or nothing new; 1 a run failed; 2 usage or configuration; 3 another runner holds the pipeline.
    """
    if isinstance(ctx.obj, Session):
        ctx.obj.debug = debug


def main(argv: list[str] | None = None, registry: Registry | None = None) -> int:
    """`registry` lets tests run the real command line with components of their own."""
    return invoke(argv, Session(registry))


def invoke(argv: list[str] | None, session: Session) -> int:
    words = sys.argv[1:] if argv is None else argv
    try:
        typer.main.get_command(app_for(words)).main(args=words, prog_name="floodmark", obj=session)
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    return 0


def entry() -> NoReturn:
    """Projects are closed by now, and what others want done at the end is done: all that Python would do beside is to
    take its objects apart, for a tenth of a run's time and more. Nor is there much garbage to look for while a run
    imports what it needs."""
    gc.set_threshold(100_000)
    code = main()
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    entry()
