"""A table can't be a copy of itself: a load would find its own rows, and a full refresh would write the source anew."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.errors import ConfigError
from floodmark.model.spec import ConnectionOptions, PipelineSpec

USUAL = {"postgres": "public", "sqlite": "main", "duckdb": "main", "iceberg": "default"}
"""The schema of a table that is named without one."""


def refuse_itself(spec: PipelineSpec, connections: Mapping[str, ConnectionOptions]) -> None:
    """As far as the file tells: two addresses may lead to one place."""
    source, target = connections[spec.source.connection], connections[spec.target.connection]
    if source != target or spec.source.table is None:
        return
    usual = f"{USUAL[source.type]}." if source.type in USUAL else ""
    if spec.source.table.removeprefix(usual) == spec.target.table.removeprefix(usual):
        raise ConfigError(
            f"{spec.source.table} would be loaded into itself",
            pipeline=spec.name,
            table=spec.target.table,
            declared_at=spec.at("target.table"),
            hint="give the copy another table, or a connection of its own",
        )
