"""Sections to a frozen ProjectSpec. Everything that is wrong is gathered before anything is raised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import ValidationError

from floodmark.config.defaults import with_defaults
from floodmark.config.explain import report, secrets_below
from floodmark.config.files import Sections
from floodmark.config.locate import NOT_WRITTEN, options_of
from floodmark.config.problems import Problems
from floodmark.config.secrets import mask
from floodmark.config.suggest import closest, did_you_mean
from floodmark.config.tree import Node, show
from floodmark.config.variables import Unset, Variables
from floodmark.errors import ConfigError, MissingExtra, Place
from floodmark.model.duration import parse_duration
from floodmark.model.spec import ConnectionOptions, PipelineSpec, ProjectSpec, SparkSpec

_T = TypeVar("_T")

_EXAMPLE = """add one:
pipelines:
  orders:
    source: {connection: shop, table: public.orders}
    change: {by: timestamp, column: updated_at}
    target: {connection: lake, table: orders, mode: upsert, keys: [order_id]}"""


@dataclass(frozen=True)
class ConnectionTypes:
    """The registry's side of it, handed in: config and registry don't know each other."""

    get: Callable[[str], type[ConnectionOptions]]
    names: Callable[[], list[str]]


@dataclass(frozen=True)
class Builder:
    types: ConnectionTypes
    variables: Variables
    problems: Problems

    def project(self, sections: Sections, root: str, file: str | None) -> ProjectSpec:
        declared = {name: self.variables.fill(node) for name, node in _children(sections, "connections").items()}
        connections = _present({name: self._connection(node) for name, node in declared.items()})
        spark_node = self.variables.fill(sections.get("spark", Node({}, "spark")))
        spark = self._spark(spark_node)
        state = self.variables.fill(sections["state"]) if "state" in sections else None
        nodes = self._pipeline_nodes(sections)
        pipelines = _present({name: self._pipeline(name, node) for name, node in nodes.items()})
        self._check_any(sections, file)
        self._check_connections(nodes, declared)
        self._check_targets(pipelines, connections)
        self.problems.raise_all()
        settings = [*declared.values(), spark_node, *([state] if state else [])]
        return ProjectSpec(
            root=root,
            connections=connections,
            pipelines=pipelines,
            spark=spark,
            secrets=self._secrets(connections, settings, nodes.values()),
            **self._settings(sections, state),
        )

    def _connection(self, node: Node) -> ConnectionOptions | None:
        if not isinstance(node.value, dict):
            self.problems.add(f"{node.path}: expected a mapping, got {_got(node)}", node.place)
            return None
        cls = self._connection_class(node)
        if cls is None:
            return None
        try:
            return cls.model_validate(node.plain())
        except ValidationError as error:
            report(error, cls, node, self.problems, secrets=self.variables.secrets + secrets_below(node))
        return None

    def _missing_type(self, node: Node) -> None:
        hint = f"Known types: {', '.join(self.types.names())}"
        near = closest("type", node.children)
        if near:
            hint = f"did you mean type instead of {near}? {hint}"
        place = node.children[near].place if near else node.place
        self.problems.add(f"missing option 'type' in {node.path}", place, hint=hint)

    def _connection_class(self, connection: Node) -> type[ConnectionOptions] | None:
        kind = connection.children.get("type")
        if kind is None:
            self._missing_type(connection)
            return None
        if isinstance(kind.value, Unset):
            return None
        if not isinstance(kind.value, str):
            self.problems.add(f"{kind.path}: expected text, got {show(kind.plain())}", kind.place)
            return None
        try:
            return self.types.get(kind.value)
        except MissingExtra as error:
            error.located(declared_at=kind.place)
            self.problems.keep(error)
        except ConfigError as error:
            names = self.types.names()
            if kind.value in names:
                self.problems.add(error.message, kind.place, path=kind.path, hint=error.hint)
            else:
                # The registry says "unknown connection", which in a file is what a pipeline's wrong reference is.
                shown = mask(kind.value, self.variables.secrets)
                message = f"unknown connection type {shown!r} in {connection.path}"
                self.problems.add(message, kind.place, hint=did_you_mean(kind.value, names, "Known types"))
        return None

    def _pipeline_nodes(self, sections: Sections) -> dict[str, Node]:
        """Merged with the defaults, and only then filled: a default that is always overridden needs no variable."""
        nodes = {}
        for name, declared in _children(sections, "pipelines").items():
            node = replace(declared, value={}) if declared.value is None else declared
            if not isinstance(node.value, dict):
                message = f"{node.path}: expected a mapping, got {_got(node)}"
                self.problems.add(message, node.place, pipeline=name)
                continue
            nodes[name] = self.variables.fill(with_defaults(node, sections.get("defaults")), name)
        return nodes

    def _pipeline(self, name: str, node: Node) -> PipelineSpec | None:
        for option in NOT_WRITTEN:
            if stray := node.children.get(option):
                container = stray.path.removesuffix(f".{option}")
                hint = did_you_mean(option, options_of(PipelineSpec), "Known keys")
                self.problems.add(f"unknown key {option!r} in {container}", stray.place, hint=hint)
        written = {key: child for key, child in node.children.items() if key not in NOT_WRITTEN}
        data = {key: child.plain() for key, child in written.items()}
        try:
            return PipelineSpec.model_validate({**data, "name": name, "places": _places(node)})
        except ValidationError as error:
            secrets = self.variables.secrets + secrets_below(node, pipeline=True)
            report(error, PipelineSpec, node, self.problems, secrets=secrets, pipeline=name)
        return None

    def _spark(self, node: Node) -> SparkSpec:
        try:
            return SparkSpec.model_validate(node.plain())
        except ValidationError as error:
            report(error, SparkSpec, node, self.problems, secrets=self.variables.secrets + secrets_below(node))
        return SparkSpec()

    def _settings(self, sections: Sections, state: Node | None) -> dict[str, Any]:
        """What has a default, where the file says otherwise."""
        settings: dict[str, Any] = {"state": state.plain()} if state else {}
        if "lease_ttl" in sections:
            node = self.variables.fill(sections["lease_ttl"])
            try:
                settings["lease_ttl"] = parse_duration(node.plain())
            except ValueError as error:
                raise ConfigError(f"lease_ttl: {error}", declared_at=node.place) from error
        return settings

    def _check_any(self, sections: Sections, file: str | None) -> None:
        # With anything else wrong, that is likelier the reason: `pipeline:` for `pipelines:`, say.
        if not self.problems and not _children(sections, "pipelines"):
            place = sections["pipelines"].place if "pipelines" in sections else None
            message = f"no pipelines in {file}" if file else "no pipelines"
            self.problems.add(message, place or (Place(file, 1) if file else None), hint=_EXAMPLE)

    def _check_connections(self, nodes: Mapping[str, Node], declared: Mapping[str, Node]) -> None:
        for name, node in nodes.items():
            for side in ("source", "target"):
                section = node.children.get(side)
                named = section.children.get("connection") if section else None
                if named is None or not isinstance(named.value, str) or isinstance(named.value, Unset):
                    continue
                if named.value not in declared:
                    container = named.path.removesuffix(".connection")
                    hint = did_you_mean(named.value, declared, "Connections")
                    message = f"unknown connection {mask(named.value, self.variables.secrets)!r} in {container}"
                    pipeline = None if container.startswith("defaults") else name
                    self.problems.add(message, named.place, hint=hint, pipeline=pipeline)

    def _check_targets(
        self, pipelines: Mapping[str, PipelineSpec], connections: Mapping[str, ConnectionOptions]
    ) -> None:
        """Two loaders of one table would each see the other's commits as somebody else's."""
        taken: dict[tuple[str, str], PipelineSpec] = {}
        for spec in pipelines.values():
            options = connections.get(spec.target.connection)
            # Two names for the same connection are still one table.
            name = next((n for n, o in connections.items() if o == options), spec.target.connection)
            first = taken.setdefault((name, spec.target.table), spec)
            if first is not spec:
                other = first.at("target.table")
                self.problems.add(
                    f"pipelines {first.name} and {spec.name} both load {name}.{spec.target.table}: "
                    "one table, one pipeline",
                    spec.at("target.table"),
                    hint=f"{first.name} declares it at {other}" if other else "give each its own table",
                    pipeline=spec.name,
                )

    def _secrets(
        self, connections: Mapping[str, ConnectionOptions], settings: Iterable[Node], pipelines: Iterable[Node]
    ) -> tuple[str, ...]:
        found = [*self.variables.secrets]
        for options in connections.values():
            found += options.secrets
        for node in settings:
            found += secrets_below(node)
        for node in pipelines:
            found += secrets_below(node, pipeline=True)
        return tuple(dict.fromkeys(filter(None, found)))


def _children(sections: Sections, name: str) -> Mapping[str, Node]:
    return sections[name].children if name in sections else {}


def _present(found: Mapping[str, _T | None]) -> dict[str, _T]:
    return {name: value for name, value in found.items() if value is not None}


def _got(node: Node) -> str:
    """A connection written as a URL instead of a mapping may hold a password."""
    return "text" if isinstance(node.value, str) else show(node.plain())


def _places(node: Node) -> dict[str, Place]:
    return {".".join(map(str, path)): inner.place for path, inner in node.walk() if inner.place}
