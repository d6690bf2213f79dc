"""pydantic's errors in the words of the file that has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, time
from typing import Any

from pydantic import BaseModel, ValidationError

from floodmark.config.locate import Spot, choices_in, follow, options_of, trim
from floodmark.config.problems import Problems
from floodmark.config.secrets import mask, secret_path
from floodmark.config.suggest import closest, did_you_mean
from floodmark.config.tree import Node, Path, join, show
from floodmark.config.variables import Unset
from floodmark.model.passwords import passwords_in

_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "bool": "true or false",
    "string": "text",
    "bytes": "text",
    "datetime": "a date and time",
    "date": "a date",
    "time": "a time",
    "path": "a path",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "frozen_set": "a list",
    "iterable": "a list",
    "dict": "a mapping",
    "mapping": "a mapping",
    "model": "a mapping",
    "model_attributes": "a mapping",
    "dataclass": "a mapping",
}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}


def report(
    error: ValidationError,
    cls: type[BaseModel],
    node: Node,
    problems: Problems,
    *,
    secrets: Iterable[str],
    pipeline: str | None = None,
) -> None:
    _Report(cls, node, problems, tuple(secrets), pipeline).tell(error)


@dataclass(frozen=True)
class _Report:
    cls: type[BaseModel]
    root: Node
    problems: Problems
    secrets: tuple[str, ...]
    pipeline: str | None

    def tell(self, error: ValidationError) -> None:
        told = [(follow(self.cls, detail["loc"]), detail) for detail in error.errors(include_url=False)]
        found = [(spot, detail) for spot, detail in told if not self._beside_the_point(spot, detail, told)]
        misspelt = set(filter(None, (self._meant(spot) for spot, detail in found if _is_unknown(detail))))
        wrong: dict[Path, list[tuple[Spot, Any]]] = {}
        for spot, detail in found:
            if _is_unknown(detail):
                self._unknown(spot)
            elif detail["type"] == "missing":
                # `tabel` is one mistake, not an unknown key and a missing one.
                if option := detail.get("ctx", {}).get("option"):
                    self._missing((*spot.path, option), detail["ctx"]["about"])
                elif spot.path not in misspelt:
                    self._missing(spot.path, spot.field.description if spot.field else None)
            elif detail["type"] == "union_tag_not_found":
                self._missing((*spot.path, _tag_key(detail)), f"One of {', '.join(_tags(spot, detail))}.")
            elif detail["type"] == "union_tag_invalid":
                self._not_one_of((*spot.path, _tag_key(detail)), _tags(spot, detail))
            else:
                wrong.setdefault(trim(spot.path, self.root), []).append((spot, detail))
        for path, group in wrong.items():
            self._wrong(path, group)

    def _beside_the_point(self, spot: Spot, detail: Any, told: Sequence[tuple[Spot, Any]]) -> bool:
        """Of a choice between a word and a mapping pydantic tells what is wrong with both: only the one meant
        counts."""
        path = trim(spot.path, self.root)
        others = [d for s, d in told if d is not detail and trim(s.path, self.root)[: len(path)] == path]
        if isinstance(self._at(path).value, dict):
            return detail["type"] == "literal_error" and bool(others)
        return detail["type"] == "model_type" and any(d["type"] == "literal_error" for d in others)

    def _unknown(self, spot: Spot) -> None:
        key = str(spot.path[-1])
        node = self._at(spot.path)
        container = node.path.removesuffix(f".{key}")
        hint = did_you_mean(key, _known(spot), "Known keys")
        self._add(f"unknown key {key!r} in {container}", replace(node, path=container), hint=hint)

    def _meant(self, spot: Spot) -> Path | None:
        near = closest(str(spot.path[-1]), _known(spot))
        return (*spot.path[:-1], near) if near else None

    def _missing(self, path: Path, description: str | None) -> None:
        container = self.root.path
        for step in path[:-1]:
            container = join(container, step)
        hint = " ".join(filter(None, (description, "Set it here or under defaults." if self.pipeline else None)))
        # Not where the defaults stand: they are right for the pipelines that add the rest.
        inside = [self.root, *(self._at(path[:i]) for i in range(1, len(path)))]
        place = [node for node in inside if self._own(node)][-1].place
        message = f"missing option {str(path[-1])!r} in {container}"
        self.problems.add(message, place, hint=hint or None, pipeline=self.pipeline)

    def _not_one_of(self, path: Path, choices: Sequence[str]) -> None:
        node = self._at(path)
        near = closest(node.value, choices) if isinstance(node.value, str) else None
        self._add(
            f"{_subject(path, node)} {self._got(path, node.value)} is not one of {', '.join(choices)}",
            node,
            hint=f"did you mean {near}?" if near else None,
        )

    def _wrong(self, path: Path, group: list[tuple[Spot, Any]]) -> None:
        node = self._at(path)
        spot, detail = group[0]
        got = self._got(path, node.value)
        expected = [_expected(d["type"]) for _, d in group]
        if detail["type"] in ("literal_error", "enum"):
            choices = tuple(choices_in(spot.field.annotation)) if spot.field else ()
            self._not_one_of(path, choices or (str(detail["ctx"]["expected"]),))
        elif all(expected):
            message = f"{node.path}: expected {_either(expected)}, got {got}"
            self._add(message, node, hint=self._quoting(path, node.value, expected))
        elif detail["type"] in _BOUNDS:
            words, key = _BOUNDS[detail["type"]]
            self._add(f"{_subject(path, node)} must be {words} {detail['ctx'][key]}, got {got}", node)
        elif "error" in detail.get("ctx", {}):
            # Our own words, raised by a validator: they say it better than anything added here could.
            self._add(mask(str(detail["ctx"]["error"]), self.secrets), node)
        else:
            words = detail["msg"][:1].lower() + detail["msg"][1:]
            self._add(mask(f"{_subject(path, node)}: {words}", self.secrets), node)

    def _quoting(self, path: Path, value: object, expected: Sequence[str | None]) -> str | None:
        if self._is_secret(path, value):
            return None
        if "text" in expected and isinstance(value, int | float | date | time):
            return f'put it in quotes: "{show(value)}"'
        return f"write it as a list: [{value}]" if "a list" in expected and isinstance(value, str) else None

    def _got(self, path: Path, value: object) -> str:
        return "a hidden value" if self._is_secret(path, value) else show(value)

    def _is_secret(self, path: Path, value: object) -> bool:
        if secret_path(path, pipeline=self.pipeline is not None):
            return True
        return isinstance(value, str) and (value in self.secrets or bool(passwords_in(value)))

    def _at(self, path: Path) -> Node:
        node = self.root
        for step in path:
            node = node.child(step) or node
        return node

    def _add(self, message: str, node: Node, *, hint: str | None = None) -> None:
        # The unset variable has been reported; what its absence breaks would only be noise.
        if any(isinstance(inner.value, Unset) for _, inner in node.walk()):
            return
        inherited = not self._own(node)
        pipeline = None if inherited else self.pipeline
        self.problems.add(message, node.place, path=node.path, hint=hint, pipeline=pipeline)

    def _own(self, node: Node) -> bool:
        return f"{node.path}.".startswith(f"{self.root.path}.")


def secrets_below(node: Node, *, pipeline: bool = False) -> list[str]:
    """Values under secret names, and passwords inside URLs."""
    found = []
    for path, inner in node.walk():
        if secret_path(path, pipeline=pipeline):
            found += [] if isinstance(inner.value, dict | list | None) else [str(inner.value)]
        elif isinstance(inner.value, str):
            found += passwords_in(inner.value)
    return found


def _is_unknown(detail: Any) -> bool:
    return bool(detail["type"] == "extra_forbidden")


def _known(spot: Spot) -> list[str]:
    return list(options_of(spot.owner)) if spot.owner else []


def _tag_key(detail: Any) -> str:
    return str(detail["ctx"]["discriminator"]).strip("'")


def _tags(spot: Spot, detail: Any) -> list[str]:
    key = _tag_key(detail)
    return [tag for model in spot.models for tag in choices_in(model.model_fields[key].annotation)]


def _expected(error_type: str) -> str | None:
    stem = error_type
    for ending in ("_type", "_from_date_parsing", "_from_datetime_parsing", "_parsing_size", "_parsing", "_from_float"):
        stem = stem.removesuffix(ending)
    return _EXPECTED.get(stem) if stem != error_type else None


def _either(words: Sequence[str | None]) -> str:
    *first, last = dict.fromkeys(filter(None, words))
    return f"{', '.join(first)} or {last}" if first else last


def _subject(path: Path, node: Node) -> str:
    """Just the option where a line is shown beside it, else its whole path. A list's item goes by the list's name."""
    named = [step for step in path if isinstance(step, str)]
    return named[-1] if named and node.place else node.path
