"""The `floodmark` command."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from floodmark import __version__
from floodmark.cli import backfill, demo, plan, run, spark, state, status, validate
from floodmark.cli.options import Debug
from floodmark.cli.session import Session

if TYPE_CHECKING:
    from floodmark.registry import Registry

# Plain help and plain errors: they read the same in a terminal and in a log, and cost no import of rich.
app = typer.Typer(
    name="floodmark", no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)
app.command()(demo.demo)
app.command()(validate.validate)
app.command()(plan.plan)
app.command()(run.run)
app.command()(backfill.backfill)
app.command()(status.status)
app.command()(status.history)
app.add_typer(state.app, name="state")
app.add_typer(spark.app, name="spark")
app.command()(validate.schema)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"floodmark {__version__}")
        raise typer.Exit


@app.callback()
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
    try:
        typer.main.get_command(app).main(args=argv, prog_name="floodmark", obj=session)
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
