"""Errors in words: what is wrong, where it was declared, what to do next. And no secret in any of it."""

from __future__ import annotations

import json
import os
import re
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from floodmark.errors import FloodmarkError, Place

if TYPE_CHECKING:
    from floodmark.model.outcome import RunResult

HIDDEN = "***"
FAILED = 1
INTERRUPTED = 130

_GRAVITY = (1, 2, 3)
_LONGEST_LINE = 400
# A password typed straight into a URL can be shown by an error before anything has learned that it is one.
# Greedy to the last @, for a password may hold one itself.
_URL_PASSWORD = re.compile(r"(?<=://)([^\s:/@]*):(\S+)@")


class Redactor:
    def __init__(self) -> None:
        self._forms: tuple[str, ...] = ()

    def learn(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if secret for form in _written_forms(secret)}
        # Longest first: a secret that holds another one must not leave its rest behind.
        self._forms = tuple(sorted({*self._forms, *forms}, key=lambda form: (-len(form), form)))

    def __call__(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        return _URL_PASSWORD.sub(rf"\1:{HIDDEN}@", text)

    def document(self, value: Any) -> Any:
        """Inside strings only, so that a number stays a number and the document stays JSON."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, dict):
            return {self(str(key)): self.document(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.document(item) for item in value]
        return value


def _written_forms(secret: str) -> set[str]:
    """As it is, and as URLs, tracebacks and JSON write it."""
    return {secret, quote(secret, safe=""), quote_plus(secret), repr(secret)[1:-1], json.dumps(secret)[1:-1]}


def error_lines(
    error: BaseException,
    *,
    pipeline: str | None = None,
    command: str = "",
    redact: Callable[[str], str] = str,
) -> list[str]:
    """One headline, then indented: the place, then the hint. Redacted before the indent, or a secret of several lines
    would no longer be recognised."""
    if not isinstance(error, FloodmarkError):
        again = " ".join(filter(None, ("floodmark", command, "…")))
        return [_headline(pipeline, first_words(error, redact)), f"  {again} --debug shows the traceback"]
    first, *rest = redact(error.message).splitlines() or [type(error).__name__]
    # The one code that schedulers treat differently: nothing is broken, somebody else is at work.
    held = " (exit 3)" if error.exit_code == 3 else ""
    lines = [_headline(error.pipeline or pipeline, first + held)]
    lines += [f"  {line}" for line in rest]
    if error.declared_at is not None:
        lines.append(f"  {show_place(error.declared_at)}  {redact(error.declared_at.text.strip())}".rstrip())
    lines += [f"  {line}".rstrip() for line in redact(error.hint or "").splitlines()]
    return lines


def show_place(place: Place) -> str:
    """Relative where the file is below the current folder, as editors and terminals link it."""
    path = Path(place.file)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        return f"{os.path.relpath(path)}:{place.line}"
    return str(place)


def first_words(error: BaseException, redact: Callable[[str], str] = str) -> str:
    """One line, e.g. for a table. Spark's errors run to pages; their first line is the error."""
    text = redact(error.message if isinstance(error, FloodmarkError) else str(error))
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    line = line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "…"
    if isinstance(error, FloodmarkError):
        return line or type(error).__name__
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def traceback_text(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)).rstrip()


def error_document(error: BaseException, pipeline: str | None = None) -> dict[str, Any]:
    if not isinstance(error, FloodmarkError):
        return {"type": type(error).__name__, "message": str(error), "pipeline": pipeline, "exit_code": FAILED}
    place = error.declared_at
    return {
        "type": type(error).__name__,
        "message": error.message,
        "pipeline": error.pipeline or pipeline,
        "table": error.table,
        "column": error.column,
        "declared_at": None if place is None else {"file": place.file, "line": place.line, "text": place.text},
        "hint": error.hint,
        "exit_code": error.exit_code,
    }


def exit_code_of(error: BaseException) -> int:
    return error.exit_code if isinstance(error, FloodmarkError) else FAILED


def exit_code_of_result(result: RunResult) -> int:
    if result.success:
        return 0
    return FAILED if result.failure is None else exit_code_of(result.failure)


def worst(codes: Iterable[int]) -> int:
    """Of several pipelines the one that needs a person most: a failed run (1), then a file to mend (2), then another
    runner (3), which passes by itself: a scheduler that shrugs at 3 must not miss the others."""
    seen = set(codes) - {0}
    return next((code for code in _GRAVITY if code in seen), max(seen, default=0))


def _headline(pipeline: str | None, text: str) -> str:
    return f"✗ {pipeline}  {text}" if pipeline else f"✗ {text}"
