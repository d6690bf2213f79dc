"""Kind and name to a component, imported only when asked for. An object, so that tests register fakes in their own."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Literal

from floodmark.errors import ConfigError, MissingExtra

Kind = Literal["connection", "source", "target", "change", "state"]

BUILT_IN = {
    "connection.sqlite": "floodmark.connections.sqlite:SqliteConnection",
    "connection.postgres": "floodmark.connections.postgres:PostgresConnection",
    "connection.mysql": "floodmark.connections.mysql:MysqlConnection",
    "connection.mariadb": "floodmark.connections.mysql:MysqlConnection",
    "connection.jdbc": "floodmark.sources.jdbc.connection:JdbcConnection",
    "connection.delta": "floodmark.connections.delta:DeltaConnection",
    "connection.iceberg": "floodmark.connections.iceberg:IcebergConnection",
    "connection.duckdb": "floodmark.connections.duckdb:DuckdbConnection",
    "connection.parquet": "floodmark.targets.parquet.target:ParquetConnection",
    "source.sqlite": "floodmark.sources.sqlite.source:SqliteSource",
    "source.postgres": "floodmark.sources.postgres.source:PostgresSource",
    "source.mysql": "floodmark.sources.mysql.source:MysqlSource",
    "source.mariadb": "floodmark.sources.mysql.source:MysqlSource",
    "source.jdbc": "floodmark.sources.jdbc.source:JdbcSource",
    "source.delta": "floodmark.sources.lake.delta:DeltaSource",
    "source.iceberg": "floodmark.sources.lake.iceberg:IcebergSource",
    "target.delta": "floodmark.targets.delta.target:DeltaTarget",
    "target.iceberg": "floodmark.targets.iceberg.target:IcebergTarget",
    "target.postgres": "floodmark.targets.postgres.target:PostgresTarget",
    "target.mysql": "floodmark.targets.mysql.target:MysqlTarget",
    "target.mariadb": "floodmark.targets.mysql.target:MysqlTarget",
    "target.sqlite": "floodmark.targets.sqlite.target:SqliteTarget",
    "target.duckdb": "floodmark.targets.duckdb.target:DuckdbTarget",
    "target.parquet": "floodmark.targets.parquet.target:ParquetTarget",
    "change.timestamp": "floodmark.changes.timestamp:TimestampChange",
    "change.sequence": "floodmark.changes.sequence:SequenceChange",
    "change.none": "floodmark.changes.none:FullChange",
    "state.file": "floodmark.state.file:FileStore",
    "state.sqlite": "floodmark.state.sql:SqlStore",
    "state.postgresql": "floodmark.state.sql:SqlStore",
    "state.postgres": "floodmark.state.sql:SqlStore",
    "state.mysql": "floodmark.state.sql:SqlStore",
    "state.mariadb": "floodmark.state.sql:SqlStore",
    "state.s3": "floodmark.state.objects:ObjectStore",
    "state.gs": "floodmark.state.objects:ObjectStore",
    "state.az": "floodmark.state.objects:ObjectStore",
    "state.env": "floodmark.state.env:EnvStore",
    "state.target": "floodmark.state.target:TargetStore",
}

EXTRAS = {
    "psycopg": "postgres",
    "pymysql": "mysql",
    "deltalake": "delta",
    "pyiceberg": "iceberg",
    "pyarrow": "delta",
    "duckdb": "duckdb",
    "pyspark": "spark",
    "obstore": "object-store",
}
"""Top-level module to the extra that brings it."""


class Registry:
    def __init__(self, components: Mapping[str, str | Callable[..., Any]] | None = None) -> None:
        self._components: dict[str, str | Callable[..., Any]] = dict(components or {})

        self._asks_packages = False

    @classmethod
    def default(cls) -> Registry:
        registry = cls(BUILT_IN)
        registry._asks_packages = True
        return registry

    def copy(self) -> Registry:
        copied = Registry(self._components)
        copied._asks_packages = self._asks_packages
        return copied

    def register(self, kind: Kind, name: str, factory: Callable[..., Any]) -> None:
        self._components[f"{kind}.{name}"] = factory

    def names(self, kind: Kind) -> list[str]:
        self._ask_packages()
        return sorted(key.partition(".")[2] for key in self._components if key.startswith(f"{kind}."))

    def get(self, kind: Kind, name: str) -> Any:
        if f"{kind}.{name}" not in self._components:
            self._ask_packages()
        component = self._components.get(f"{kind}.{name}")
        if component is None:
            raise ConfigError(f"unknown {kind} {name!r}", hint=f"known: {', '.join(self.names(kind))}")
        if not isinstance(component, str):
            return component
        module, _, attribute = component.partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            raise missing_extra(error) from error

    def _ask_packages(self) -> None:
        """What installed packages bring: asked for only where a name is not ours, since it means a look at each."""
        if not self._asks_packages:
            return
        from importlib.metadata import entry_points

        self._asks_packages = False
        found = {e.name: e.value for e in entry_points(group="floodmark.components")}
        self._components = {**found, **self._components}


def missing_extra(error: ModuleNotFoundError) -> Exception:
    module = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(module)
    if extra is None:
        return error
    return MissingExtra(f"{module} is not installed", hint=f"pip install 'floodmark[{extra}]'")
