"""The edge of every command: opens the project, and turns whatever is raised into words and an exit code."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from floodmark.cli.failure import (
    INTERRUPTED,
    error_document,
    error_lines,
    exit_code_of,
    first_words,
    traceback_text,
    worst,
)
from floodmark.cli.options import parse_variables
from floodmark.cli.output import Output

if TYPE_CHECKING:
    from floodmark.model.outcome import RunResult
    from floodmark.project import Project
    from floodmark.registry import Registry


@dataclass
class Session:
    """Lives as long as one call of `main`. The demo makes several calls within one, to keep its Spark warm."""

    registry: Registry | None = None
    keeps_projects: bool = False
    debug: bool = False
    """Asked for before the command's name."""
    results: list[RunResult] = field(default_factory=list)
    projects: dict[Path, Project] = field(default_factory=dict)

    def close(self) -> None:
        while self.projects:
            self.projects.popitem()[1].close()


@dataclass
class Call:
    """One command at work."""

    session: Session
    out: Output
    command: str
    debug: bool
    codes: list[int] = field(default_factory=list)

    @property
    def json(self) -> bool:
        return self.out.json

    def variables(self, given: Sequence[str] | None) -> dict[str, str]:
        """Those with a secret's name are hidden from here on: a file that doesn't load can't say what is secret."""
        from floodmark.config.secrets import secret_variable

        variables = parse_variables(given)
        self.out.redact.learn(value for name, value in variables.items() if secret_variable(name))
        return variables

    def open(
        self, file: Path, given: Sequence[str] | None, *, master: str | None = None, remote: str | None = None
    ) -> Project:
        from floodmark.opening import load  # here, so that --help needs none of it

        _keep_logging_quiet()

        project = self.session.projects.get(file.resolve())
        if project is None:
            project = load(
                file,
                variables=self.variables(given),
                registry=self.session.registry,
                master=master,
                remote=remote,
                resident=not self.session.keeps_projects,
            )
            self.session.projects[file.resolve()] = project
        self.out.redact.learn(project.spec.secrets)
        return project

    def tell(self, error: BaseException, pipeline: str | None = None) -> None:
        """Says it on stderr and remembers its exit code; the command goes on."""
        self.codes.append(exit_code_of(error))
        self.out.error(error_lines(error, pipeline=pipeline, command=self.command, redact=self.out.redact))
        if self.debug:
            self.out.error(self.out.redact(traceback_text(error)).splitlines())


def _keep_logging_quiet() -> None:
    """What there is to say is said by the command. A library that logs, where nobody has set up any logging, would set
    it up itself and write into the progress."""
    if not logging.root.handlers:
        logging.root.addHandler(logging.NullHandler())


@contextlib.contextmanager
def calling(ctx: typer.Context, *, json: bool, debug: bool) -> Iterator[Call]:
    session = ctx.obj if isinstance(ctx.obj, Session) else Session()
    call = Call(session, Output(json=json), ctx.command_path.partition(" ")[2], debug or session.debug)
    with call.out.kept_clean():
        try:
            with _answering(call):
                yield call
        finally:
            _close(call)
    if code := worst(call.codes):
        raise typer.Exit(code)


@contextlib.contextmanager
def _answering(call: Call) -> Iterator[None]:
    try:
        yield
    except (typer.Exit, typer.Abort, BrokenPipeError):  # typer's own, and a reader that has seen enough
        raise
    except KeyboardInterrupt:
        call.out.error(["✗ interrupted: what was committed stays, and the next run goes on from there"])
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        call.tell(error)
        if call.json:
            call.out.document({"error": error_document(error)})


def _hand_back(call: Call) -> None:
    """What only the caller can keep, as a line of its own that a script can pick out; whether or not all went well."""
    for project in call.session.projects.values():
        for name, value in project.to_keep().items():
            line = f"{name}={value}"
            if call.json:
                call.out.error([line])
            else:
                call.out.line(line)


def _close(call: Call) -> None:
    _hand_back(call)
    if call.session.keeps_projects:
        return
    try:
        call.session.close()
    except Exception as error:  # the work is done and committed: worth a word, not a failed exit code
        call.out.error([f"! could not close: {first_words(error, call.out.redact)}"])
