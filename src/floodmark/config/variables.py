"""`${NAME}`, `${NAME:-default}` and `$$`, filled in after YAML was parsed: a value can't bring keys or structure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from floodmark.config.problems import Problems
from floodmark.config.secrets import secret_variable
from floodmark.config.suggest import closest
from floodmark.config.tree import Node

_REFERENCE = re.compile(r"\$\$|\$\{([^{}]*)\}|\$\{")
_NAME_AND_DEFAULT = re.compile(r"([A-Za-z_]\w*)(?::-(.*))?", re.DOTALL)


class Unset(str):
    """Stands where a variable could not be filled in, so that the value is not complained about a second time."""

    __slots__ = ()


class Variables:
    """Given on the command line, else in the environment, else in `variables:`, which may itself use the first two."""

    def __init__(
        self,
        given: Mapping[str, str],
        environ: Mapping[str, str],
        problems: Problems,
        declared: Mapping[str, Node] | None = None,
    ) -> None:
        self._given = given
        self._environ = environ
        self._declared = dict(declared or {})
        self._problems = problems
        self.secrets: list[str] = []
        """Values that came out of variables with a secret's name."""

    def declaring(self, declared: Mapping[str, Node]) -> Variables:
        return Variables(self._given, self._environ, self._problems, declared)

    def fill(self, node: Node, pipeline: str | None = None) -> Node:
        if isinstance(node.value, dict):
            return replace(node, value={key: self.fill(child, pipeline) for key, child in node.value.items()})
        if isinstance(node.value, list):
            return replace(node, value=[self.fill(child, pipeline) for child in node.value])
        if isinstance(node.value, str) and "$" in node.value:
            return replace(node, value=self._expand(node, pipeline))
        return node

    def _expand(self, node: Node, pipeline: str | None) -> str:
        whole = True

        def expand(match: re.Match[str]) -> str:
            nonlocal whole
            if match[0] == "$$":
                return "$"
            value = self._reference(match, node, pipeline)
            whole = whole and value is not None
            return value or ""

        filled = _REFERENCE.sub(expand, node.value)
        return filled if whole else Unset(node.value)

    def _reference(self, match: re.Match[str], node: Node, pipeline: str | None) -> str | None:
        parts = _NAME_AND_DEFAULT.fullmatch(match[1] or "")
        if parts is None:
            self._problems.add(
                "a variable is not written as ${NAME} or ${NAME:-default}",
                node.place,
                path=node.path,
                hint="for a literal $ write $$",
                pipeline=pipeline,
            )
            return None
        name, default = parts[1], parts[2]
        value = self._lookup(name)
        # As in a shell: `:-` also stands in for a variable that is set to nothing.
        if default is not None and not value:
            value = default.replace("$$", "$")
        if value is None:
            self._report_unset(name, node, pipeline)
        elif isinstance(value, Unset):
            return None
        elif secret_variable(name):
            self.secrets.append(value)
        return value

    def _lookup(self, name: str) -> str | None:
        for source in (self._given, self._environ):
            if name in source:
                return source[name]
        node = self._declared.get(name)
        if node is None or node.value is None:
            return None
        outer = self.declaring({})
        filled = outer.fill(node)
        self.secrets += outer.secrets
        value = filled.value
        if isinstance(value, bool):
            return str(value).lower()
        return value if isinstance(value, str) else str(value)

    def _report_unset(self, name: str, node: Node, pipeline: str | None) -> None:
        # An environment has many names, so only a real slip is worth a guess.
        near = closest(name, [*self._given, *self._declared, *self._environ], cutoff=0.8)
        self._problems.add(
            f"variable {name} is not set",
            node.place,
            path=node.path,
            hint=(f"did you mean {near}? " if near else "")
            + f"Set it in the environment, pass --var {name}=..., or give a default: ${{{name}:-...}}",
            pipeline=pipeline,
        )
