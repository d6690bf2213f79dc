"""`demo`: the whole story on embedded parts. Each command's output is real, and so is the verdict."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from floodmark.cli.failure import FAILED
from floodmark.cli.options import Debug
from floodmark.cli.session import Call, Session, calling
from floodmark.errors import ConfigError

Folder = Annotated[
    Path | None, typer.Option("--dir", metavar="DIR", help="Play in this new or empty folder, and leave it there.")
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep the temporary folder.")]


def demo(ctx: typer.Context, folder: Folder = None, keep: Keep = False, debug: Debug = False) -> None:
    """Play the whole story on embedded parts.

    A first load, changes, a quiet run, a run killed half-way, and the proof that nothing is lost or doubled. Needs Java
    17 or 21 and nothing else: the shop is a SQLite file, the lake a folder of Delta tables.
    """
    with calling(ctx, json=False, debug=debug) as call:
        from floodmark.cli.demo_story import Story

        with _stage(folder, keep) as stage, contextlib.chdir(stage):
            session = Session(call.session.registry, keeps_projects=True)
            try:
                good = Story(call.out, session, stage).tell()
            finally:
                session.close()
        _part(call, stage, kept=keep or folder is not None)
        if not good:
            raise typer.Exit(FAILED)


@contextlib.contextmanager
def _stage(folder: Path | None, keep: bool) -> Iterator[Path]:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ConfigError(f"{folder} is not empty", hint="name a folder that is new, or leave --dir out")
        yield folder.resolve()
        return
    made = Path(tempfile.mkdtemp(prefix="floodmark-demo-")).resolve()
    try:
        yield made
    finally:
        if not keep:
            shutil.rmtree(made, ignore_errors=True)


def _part(call: Call, stage: Path, *, kept: bool) -> None:
    if kept:
        call.out.line(f"  look around: cd {stage} && floodmark status")
    else:
        call.out.line("  the folder is gone again; --keep keeps it, --dir DIR puts it where you like")
