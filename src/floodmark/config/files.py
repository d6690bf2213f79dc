"""A project's file and all that it includes, merged into one set of sections."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from floodmark.config.defaults import over
from floodmark.config.problems import Problems
from floodmark.config.reader import parse_yaml, read_yaml
from floodmark.config.suggest import did_you_mean
from floodmark.config.tree import Node, kind
from floodmark.config.variables import Unset, Variables
from floodmark.errors import ConfigError, Place

SECTIONS = ("connections", "state", "defaults", "pipelines", "spark", "lease_ttl", "variables", "include")
_MAPPINGS = ("connections", "defaults", "pipelines", "spark", "variables")

Sections = Mapping[str, Node]


@dataclass
class Files:
    """Reads each file once, however many others include it."""

    variables: Variables
    problems: Problems
    _reading: list[str] = field(default_factory=list)
    _read: set[str] = field(default_factory=set)

    def read(self, file: str) -> Sections:
        self._reading.append(file)
        root = parse_yaml(read_yaml(file), file, self.problems)
        merged = self.with_includes(root, os.path.dirname(file))
        self._reading.pop()
        self._read.add(os.path.realpath(file))
        return merged

    def with_includes(self, root: Node, folder: str) -> Sections:
        """What a file says itself wins over what it includes; of two includes the later one wins."""
        own = check_sections(root, self.problems)
        merged: Sections = {}
        for file, place in self._included(own, folder):
            if os.path.realpath(file) in map(os.path.realpath, self._reading):
                chain = " → ".join([*self._reading, file])
                raise ConfigError(f"files include each other: {chain}", declared_at=place)
            if os.path.realpath(file) not in self._read:
                merged = merge_sections(self.read(file), merged, self.problems)
        return merge_sections({k: v for k, v in own.items() if k != "include"}, merged, self.problems)

    def _included(self, own: Sections, folder: str) -> list[tuple[str, Place | None]]:
        if "include" not in own:
            return []
        # The variables of files still to be included can't be known yet, so only this file's own count.
        include = self.variables.declaring(own["variables"].children if "variables" in own else {}).fill(own["include"])
        files: list[tuple[str, Place | None]] = []
        for item in include.value if isinstance(include.value, list) else [include]:
            if isinstance(item.value, Unset):
                self.problems.raise_all()
            if not isinstance(item.value, str) or not item.value:
                raise ConfigError(f"{item.path} must be a file or a list of files", declared_at=item.place)
            files += [(file, item.place) for file in self._matching(item, folder)]
        return files

    def _matching(self, item: Node, folder: str) -> list[str]:
        pattern: str = item.value
        if glob.has_magic(pattern):
            found = glob.glob(os.path.join(glob.escape(folder), pattern), recursive=True)
            # `include: "*.yml"` is also the file that says so.
            found = [file for file in found if not (self._reading and _same(file, self._reading[-1]))]
            trouble = "matches no file"
        else:
            found = [os.path.join(folder, pattern)]
            trouble = "no such file"
        files = [os.path.normpath(file) for file in sorted(found) if os.path.isfile(file)]
        if not files:
            raise ConfigError(
                f"can't include {pattern!r}: {trouble}",
                declared_at=item.place,
                hint=f"looked in {os.path.abspath(folder)}",
            )
        return files


def check_sections(root: Node, problems: Problems) -> Sections:
    """The sections that can be worked with; an empty one is as good as none."""
    if not isinstance(root.value, dict):
        raise ConfigError(
            f"expected sections such as `connections:` and `pipelines:`, got {kind(root.plain())}",
            declared_at=root.place,
        )
    good = {}
    for name, node in root.children.items():
        if name not in SECTIONS:
            hint = did_you_mean(name, SECTIONS, "Known keys")
            problems.add(f"unknown key {name!r} at the top level", node.place, hint=hint)
        elif node.value is None:
            continue
        elif name in _MAPPINGS and not isinstance(node.value, dict):
            problems.add(f"{name} must be a mapping of names, got {kind(node.plain())}", node.place)
        elif name == "state" and not isinstance(node.value, dict | str):
            problems.add(f"state must be a URL or a mapping, got {kind(node.plain())}", node.place)
        else:
            good[name] = node
    for node in (good["variables"].children if "variables" in good else {}).values():
        if isinstance(node.value, dict | list):
            problems.add(f"{node.path} must be a single value, got {kind(node.plain())}", node.place)
    return good


def merge_sections(above: Sections, below: Sections, problems: Problems) -> Sections:
    merged = dict(below)
    for name, node in above.items():
        if name not in below:
            merged[name] = node
        elif name == "state":
            _defined_twice("state", node, below[name], problems)
        elif name in ("connections", "pipelines"):
            for key in node.children.keys() & below[name].children.keys():
                _defined_twice(f"{name[:-1]} {key!r}", node.children[key], below[name].children[key], problems)
            merged[name] = Node({**below[name].children, **node.children}, name, node.place)
        else:
            merged[name] = over(node, below[name])
    return merged


def _defined_twice(what: str, node: Node, other: Node, problems: Problems) -> None:
    where = f"the other is at {other.place}" if other.place else "the other is declared in Python"
    problems.add(f"{what} is defined twice", node.place or other.place, hint=where)


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
