"""Where words leave the process: streams, colour, tables, the JSON document. Everything is redacted on its way."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

import typer

from floodmark.cli.failure import Redactor
from floodmark.cli.layout import Table, lay_out

_COLOURS = {"✓": "green", "✗": "red", "!": "yellow", "⚠": "yellow", "$": "cyan"}


class Output:
    """Writes lines to stdout and errors to stderr. With `json` only `document` reaches stdout."""

    def __init__(self, *, json: bool = False, redact: Redactor | None = None) -> None:
        self.json = json
        self.redact = redact or Redactor()
        self.stdout: TextIO = sys.stdout
        self._document: str | None = None
        for stream in (sys.stdout, sys.stderr):
            # A tick that the locale can't write must not be what makes a good run fail.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")

    @property
    def is_terminal(self) -> bool:
        return not self.json and self.stdout.isatty()

    @property
    def width(self) -> int | None:
        return shutil.get_terminal_size().columns if self.is_terminal else None

    def line(self, text: str = "") -> None:
        """Flushed at once: a log is read while the run goes on."""
        if not self.json:
            print(_coloured(self.redact(text), self.stdout), file=self.stdout, flush=True)

    def lines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.line(text)

    def table(self, table: Table) -> None:
        if self.json:
            return
        for number, text in enumerate(lay_out(table, self.width)):
            if number == 0 and text.startswith(table.columns[0].title) and _takes_colour(self.stdout):
                print(typer.style(self.redact(text), bold=True), file=self.stdout, flush=True)
            else:
                self.line(text)

    def error(self, texts: Iterable[str]) -> None:
        for text in texts:
            print(_coloured(self.redact(text), sys.stderr), file=sys.stderr, flush=True)

    def document(self, value: Any) -> None:
        """Printed when the command has ended; without `json` nobody asked for it."""
        if not self.json:
            return
        # ASCII, so that no locale and no pipe can spoil it.
        self._document = json.dumps(self.redact.document(value), indent=2)

    @contextlib.contextmanager
    def kept_clean(self) -> Iterator[None]:
        """With `json`, whatever else prints (a transform, the JVM, a library) goes to stderr, by the descriptor too."""
        if not self.json:
            yield
            return
        try:
            with contextlib.redirect_stdout(sys.stderr), _descriptor_to_stderr(self.stdout):
                yield
        finally:
            if self._document is not None:
                print(self._document, file=self.stdout, flush=True)


@contextlib.contextmanager
def _descriptor_to_stderr(stdout: TextIO) -> Iterator[None]:
    try:
        descriptor, stderr = stdout.fileno(), sys.stderr.fileno()
    except (OSError, ValueError):  # captured by a test or a notebook: no descriptor that a child could write to
        yield
        return
    stdout.flush()
    saved = os.dup(descriptor)
    try:
        os.dup2(stderr, descriptor)
        yield
    finally:
        stdout.flush()
        os.dup2(saved, descriptor)
        os.close(saved)


def _takes_colour(stream: TextIO) -> bool:
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def _coloured(text: str, stream: TextIO) -> str:
    """Signs carry the colour and the words stay plain, so nothing is said by colour alone."""
    if not _takes_colour(stream):
        return text
    lead = text.lstrip()[:1]
    if lead in _COLOURS:
        return text.replace(lead, typer.style(lead, fg=_COLOURS[lead], bold=True), 1)
    for sign in ("✓", "✗", "⚠"):
        text = text.replace(sign, typer.style(sign, fg=_COLOURS[sign], bold=True))
    return text
