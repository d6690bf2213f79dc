"""The stored form, shared by the stores that keep text: checked when read, with the same words everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import ValidationError

from floodmark.errors import StateError
from floodmark.model import ledger
from floodmark.model.ledger import PipelineState
from floodmark.model.record import Record

R = TypeVar("R", bound=Record)

MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""From the form of a pipeline's state in format N to N + 1, by N. Pure, and never changed once released. There is no
format 2 yet. Leases and runs have no steps of their own: they only ever gain fields that may be missing."""


def to_form(record: Record) -> dict[str, Any]:
    """Raises StateError for metadata that has no JSON form."""
    try:
        return record.to_dict()
    except ValueError as error:
        raise StateError(
            f"the state can't be written as JSON: {error}", hint="keep text, numbers, lists and maps in metadata"
        ) from error


def to_text(form: object) -> str:
    """ASCII only: no database's character set and no half surrogate can bend it."""
    return json.dumps(form, separators=(",", ":"))


def from_text(text: str | bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged(where, f"it is not JSON ({error})") from error


def to_state(form: object, where: str) -> PipelineState:
    """Of any format up to ours. What is stored changes with the next save, not before: reading stays reading."""
    return to_record(PipelineState, _in_our_format(form, where) if isinstance(form, dict) else form, where)


def stored_revision(form: object, where: str) -> int:
    """Without reading the rest: whoever knows the revision has read it all before. 0 for None."""
    if form is None:
        return 0
    revision = form.get("revision") if isinstance(form, dict) and form.get("format") == ledger.FORMAT else None
    # Saved states begin at 1. Anything else is read in full, which says what is wrong with it, or brings it up to date.
    return revision if isinstance(revision, int) and revision > 0 else to_state(form, where).revision


def _in_our_format(form: dict[str, Any], where: str) -> dict[str, Any]:
    check_format(form.get("format"), where)
    while form["format"] < ledger.FORMAT:
        reached = form["format"]
        try:
            form = {**MIGRATIONS[reached](form), "format": reached + 1}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise damaged(where, f"it can't be brought from format {reached} to {reached + 1} ({error!r})") from error
    return form


def to_record(kind: type[R], form: object, where: str) -> R:
    if not isinstance(form, dict):
        raise damaged(where, f"{kind.__name__} is a {type(form).__name__}, not a map")
    try:
        return kind.from_dict(form)
    except (ValidationError, ValueError) as error:
        raise damaged(where, f"{kind.__name__} can't be read: {_first_problem(error)}") from error


def check_format(found: object, where: str) -> None:
    if not isinstance(found, int) or isinstance(found, bool):
        raise damaged(where, "it does not say its format")
    if found > ledger.FORMAT:
        raise StateError(
            f"{where} was written by a newer Floodmark (format {found}; this one knows {ledger.FORMAT})",
            hint="upgrade Floodmark here, or point `state:` elsewhere",
        )
    if found < 1:
        raise damaged(where, f"there is no format {found}")


def damaged(where: str, what: str) -> StateError:
    return StateError(
        f"{where} is damaged: {what}",
        hint="restore it from a backup, or move it away: the next run rebuilds the state from the target",
    )


def _first_problem(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    problem = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
