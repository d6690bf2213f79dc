"""One YAML file to a tree whose every node knows its line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from floodmark.config.problems import Problems
from floodmark.config.secrets import mask_line
from floodmark.config.tree import Node, join, name_is_good
from floodmark.errors import ConfigError, Place

if TYPE_CHECKING:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.nodes import MappingNode
    from ruamel.yaml.nodes import Node as YamlNode

_LINE_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")

# What YAML's own words mean for somebody who did not write a parser.
_PLAINLY = (
    ("but got '{'", 'inside { } and [ ] a variable needs quotes: "${NAME}"'),
    ("mapping values are not allowed", "check the indentation; a value that holds ': ' needs quotes"),
    ("'\\t'", "indent with spaces: YAML allows no tabs there"),
    ("cannot start any token", "put a value that starts with this character in quotes"),
    ("'<stream end>'", "a bracket or brace that opens here or above is never closed"),
    ("end of stream", "a quote that opens here is never closed"),
    ("expected <block end>", "check the indentation: this line does not fit the lines above"),
    ("could not find expected ':'", "a key needs a colon and a space after it"),
    ("undefined alias", "put a value that starts with * in quotes, or declare the anchor with & above"),
    ("another document", "one file holds one document: remove the second '---'"),
)


def read_yaml(file: str) -> str:
    """The file's text. Raises ConfigError."""
    try:
        with open(file, "rb") as stream:
            data = stream.read()
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else (error.strerror or str(error)).lower()
        hint = "name it with -f, or go to its folder" if isinstance(error, FileNotFoundError) else None
        raise ConfigError(f"can't read {file}: {reason}", declared_at=Place(file, 1), hint=hint) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = Place(file, data.count(b"\n", 0, error.start) + 1)
        raise ConfigError(f"{file} is not UTF-8 text", declared_at=place, hint="save it as UTF-8") from None


def parse_yaml(text: str, file: str, problems: Problems) -> Node:
    """Raises ConfigError for what can't be parsed at all; the rest goes to `problems`."""
    # Imported here: it costs as much as everything else together, and a project declared in Python never needs it.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    yaml = YAML(typ="safe", pure=True)
    try:
        # Nodes rather than data: they know the line of every key, and duplicate keys are still both there.
        root = yaml.compose(text)
        if root is None:
            raise ConfigError(
                f"{file} is empty", declared_at=Place(file, 1), hint="it needs `connections:` and `pipelines:`"
            )
        return _Reading(yaml, file, _LINE_BREAK.split(text), problems).node(root, "", 1)
    except YAMLError as error:
        raise _syntax_error(error, text, file) from None
    except RecursionError:
        raise ConfigError(f"{file} is nested too deeply", declared_at=Place(file, 1)) from None


class _Reading:
    def __init__(self, yaml: YAML, file: str, lines: list[str], problems: Problems) -> None:
        self._yaml = yaml
        self._file = file
        self._lines = lines
        self._problems = problems
        self._open: set[int] = set()

    def place(self, line: int, path: str) -> Place:
        return _place(self._file, self._lines, line, pipeline=path.startswith(("pipelines.", "defaults.")))

    def node(self, node: YamlNode, path: str, line: int) -> Node:
        from ruamel.yaml.nodes import MappingNode, SequenceNode

        place = self.place(line, path)
        if id(node) in self._open:
            raise ConfigError(f"{path} contains itself through an alias", declared_at=place)
        self._open.add(id(node))
        value: Any
        if isinstance(node, MappingNode):
            value = self._mapping(node, path)
        elif isinstance(node, SequenceNode):
            value = [self.node(item, join(path, i), _line(item)) for i, item in enumerate(node.value)]
        else:
            value = self._scalar(node)
        self._open.discard(id(node))
        return Node(value, path, place)

    def _mapping(self, node: MappingNode, path: str) -> dict[str, Node]:
        children: dict[str, Node] = {}
        for key_node, value_node in node.value:
            if _is_merge(key_node):
                continue
            line = _line(key_node)
            key = self._key(key_node)
            if not name_is_good(key, path, self._problems, self.place(line, path)):
                continue
            if key in children:
                where = f" in {path}" if path else ""
                self._problems.add(
                    f"{key!r} is set twice{where}", self.place(line, path), hint=f"first at {children[key].place}"
                )
                continue
            children[key] = self.node(value_node, join(path, key), line)
        for key_node, value_node in self._merged(node, path):
            key = self._key(key_node)
            line = _line(key_node)
            if key not in children and name_is_good(key, path, self._problems, self.place(line, path)):
                children[key] = self.node(value_node, join(path, key), line)
        return children

    def _key(self, node: YamlNode) -> Any:
        value = self._scalar(node)
        return value if not isinstance(value, tuple) else list(value)

    def _scalar(self, node: YamlNode) -> Any:
        try:
            return self._yaml.constructor.construct_object(node, deep=True)
        except ValueError:
            # 2026-13-45 looks like a date to YAML and is none: then it is text, and whoever wants a date says so.
            return node.value

    def _merged(self, node: MappingNode, path: str) -> Iterator[tuple[YamlNode, YamlNode]]:
        """What `<<: *anchor` brings; the nearest wins, so those come first."""
        from ruamel.yaml.nodes import MappingNode, SequenceNode

        for key_node, value_node in node.value:
            if not _is_merge(key_node):
                continue
            for base in value_node.value if isinstance(value_node, SequenceNode) else [value_node]:
                if not isinstance(base, MappingNode) or id(base) in self._open:
                    raise ConfigError(
                        f"`<<` in {path or 'the file'} takes a mapping declared above",
                        declared_at=self.place(_line(key_node), path),
                    )
                yield from ((k, v) for k, v in base.value if not _is_merge(k))
                yield from self._merged(base, path)


def _is_merge(node: YamlNode) -> bool:
    return bool(node.tag == "tag:yaml.org,2002:merge")


def _line(node: YamlNode) -> int:
    return int(node.start_mark.line) + 1


def _place(file: str, lines: list[str], line: int, *, pipeline: bool = False) -> Place:
    text = lines[line - 1] if line <= len(lines) else ""
    return Place(file, line, mask_line(text.strip(), pipeline=pipeline))


def _syntax_error(error: YAMLError, text: str, file: str) -> ConfigError:
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it can't be parsed"
    mark = getattr(error, "problem_mark", None)
    # At the end of the file there is nothing to see: what was opened and never closed is further up.
    if "stream" in problem and "document" not in problem:
        mark = getattr(error, "context_mark", None) or mark
    position = getattr(error, "position", None)
    if mark is not None:
        line = mark.line + 1
    else:
        line = len(_LINE_BREAK.findall(text[:position])) + 1 if isinstance(position, int) else 1
    line = min(line, len(_LINE_BREAK.split(text.rstrip())))
    hint = next((words for part, words in _PLAINLY if part in problem), None)
    place = _place(file, _LINE_BREAK.split(text), line)
    return ConfigError(f"{file} is not valid YAML: {problem}", declared_at=place, hint=hint)
