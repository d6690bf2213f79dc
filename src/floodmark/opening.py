"""From a file, or from a mapping with its keys, to a project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark import config
from floodmark.model.outcome import TargetState
from floodmark.model.spec import ProjectSpec
from floodmark.project import Project
from floodmark.registry import Registry
from floodmark.stores import create_state_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def load(
    path: str | Path = "floodmark.yml",
    *,
    variables: Mapping[str, str] | None = None,
    registry: Registry | None = None,
    master: str | None = None,
    remote: str | None = None,
    spark: SparkSession | None = None,
    resident: bool = False,
) -> Project:
    """The project that a YAML file declares. `master` and `remote` win over the file's; a session of your own (a
    notebook's, with Delta in it) is used as it is and left running. `resident` lets `spark: {resident: auto}` leave a
    warm Spark behind, as the command line does."""
    registry = registry or Registry.default()
    spec = read(path, variables=variables, registry=registry)
    if master or remote:
        elsewhere = spec.spark.model_copy(update={"master": master, "remote": remote})
        spec = spec.model_copy(update={"spark": elsewhere})
    return Project(spec, registry, spark, resident=resident)


def declare(
    data: Mapping[str, Any],
    *,
    root: str | Path = ".",
    variables: Mapping[str, str] | None = None,
    registry: Registry | None = None,
    spark: SparkSession | None = None,
) -> Project:
    """The same project from a mapping with the keys of the YAML file. Relative paths start at `root`."""
    registry = registry or Registry.default()
    spec = config.project_from_dict(
        data,
        root=root,
        connection_class=lambda name: registry.get("connection", name),
        connection_types=lambda: registry.names("connection"),
        variables=variables,
    )
    return Project(spec, registry, spark)


def validate(
    path: str | Path, *, variables: Mapping[str, str] | None = None, registry: Registry | None = None
) -> ProjectSpec:
    """Offline: opens no connection and needs no Java. The sources and targets have their say, too."""
    registry = registry or Registry.default()
    spec = read(path, variables=variables, registry=registry)
    Project(spec, registry).check()
    return spec


def read(
    path: str | Path, *, variables: Mapping[str, str] | None = None, registry: Registry | None = None
) -> ProjectSpec:
    """What the file says by itself."""
    registry = registry or Registry.default()
    spec = config.load_project(
        path,
        connection_class=lambda name: registry.get("connection", name),
        connection_types=lambda: registry.names("connection"),
        variables=variables,
    )
    create_state_store(spec.state, root=spec.root, registry=registry, inspect=lambda _: TargetState(exists=False))
    return spec


def schema(registry: Registry | None = None) -> dict[str, Any]:
    """JSON Schema of a floodmark.yml, for editors."""
    registry = registry or Registry.default()
    return config.json_schema({name: registry.get("connection", name) for name in registry.names("connection")})
