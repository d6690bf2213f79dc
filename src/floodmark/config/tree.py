"""Declared values, each with the place that declared it. Merging keeps the places, so errors find the right line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from floodmark.config.problems import Problems
from floodmark.errors import Place

Path = tuple[str | int, ...]

_NAMED = {"pipelines": "pipeline name", "connections": "connection name"}
# Strings in YAML 1.2, booleans in 1.1: the linter or editor beside us may read the same file differently.
_BOOLEAN_WORDS = {"yes", "no", "on", "off", "true", "false"}


@dataclass(frozen=True)
class Node:
    """`value` is a dict of nodes, a list of nodes, or a scalar. `path` is the dotted name where it was declared, so
    what a pipeline inherits still says `defaults.…`. `place` is None for what was declared in Python."""

    value: Any
    path: str = ""
    place: Place | None = None

    @property
    def children(self) -> Mapping[str, Node]:
        return self.value if isinstance(self.value, dict) else {}

    def plain(self) -> Any:
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value

    def walk(self, path: Path = ()) -> Iterator[tuple[Path, Node]]:
        yield path, self
        if isinstance(self.value, dict | list):
            steps = self.value.items() if isinstance(self.value, dict) else enumerate(self.value)
            for step, child in steps:
                yield from child.walk((*path, step))

    def child(self, step: str | int) -> Node | None:
        if isinstance(self.value, dict):
            return self.value.get(step)
        if isinstance(self.value, list) and isinstance(step, int) and 0 <= step < len(self.value):
            found: Node = self.value[step]
            return found
        return None


def from_python(value: object, problems: Problems, path: str = "") -> Node:
    if isinstance(value, Mapping):
        children = {}
        for key, child in value.items():
            if name_is_good(key, path, problems, None):
                children[key] = from_python(child, problems, join(path, key))
        return Node(children, path)
    if isinstance(value, list | tuple):
        return Node([from_python(item, problems, join(path, i)) for i, item in enumerate(value)], path)
    return Node(value, path)


def name_is_good(key: object, container: str, problems: Problems, place: Place | None) -> bool:
    """Keys are text; the names of pipelines and connections must also be usable on a command line."""
    what = _NAMED.get(container, "key")
    where = "" if container in _NAMED or not container else f" in {container}"
    if key is None or (isinstance(key, str) and not key.strip()):
        problems.add(f"a {what}{where} is empty", place, hint="give it a name")
        return False
    if isinstance(key, dict | list):
        problems.add(f"a {what}{where} is {kind(key)}, not text", place)
        return False
    if not isinstance(key, str):
        boolean_name = container in _NAMED and isinstance(key, bool)
        hint = "choose another name" if boolean_name else f'put it in quotes: "{show(key)}"'
        problems.add(f"{what} {show(key)}{where} is {kind(key)}, not text", place, hint=hint)
        return False
    if container in _NAMED and key.casefold() in _BOOLEAN_WORDS:
        problems.add(f"{what} {key!r} means true or false to many YAML readers", place, hint="choose another name")
        return False
    return True


def join(path: str, step: str | int) -> str:
    return f"{path}.{step}" if path else str(step)


def kind(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return "text" if isinstance(value, str) else f"a {type(value).__name__}"


def show(value: object) -> str:
    """A value inside a sentence, in YAML's words."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return kind(value)
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else f"{value[:57]}...")
    return str(value)
