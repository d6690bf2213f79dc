"""The statements that make an Iceberg table and change what it looks like; each is a commit of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from floodmark.model.names import spark_name
from floodmark.model.target import TargetSpec
from floodmark.targets.lake_sql import table_properties
from floodmark.targets.lake_types import sql_type
from floodmark.targets.schema import Fit

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType

OURS = "floodmark.pipeline"
"""Property of a table that we made: as long as nothing is in it, its columns may still change."""


def create_table(name: str, schema: StructType, spec: TargetSpec, pipeline: str) -> list[str]:
    layout = f" PARTITIONED BY ({_names(spec.partition_by)})" if spec.partition_by else ""
    properties = table_properties(_settings(spec) | {OURS: pipeline})
    create = f"CREATE TABLE IF NOT EXISTS {name} ({_columns(schema.fields)}) USING iceberg{layout}"
    return [f"{create} TBLPROPERTIES ({properties})", *order_table(name, spec)]


def _settings(spec: TargetSpec) -> dict[str, str]:
    mode = "merge-on-read" if spec.matches_keys and spec.deletion_vectors else "copy-on-write"
    return {
        "format-version": "2",
        **{f"write.{statement}.mode": mode for statement in ("merge", "update", "delete")},
        # Each load is a handful of commits, and each commit leaves a metadata file.
        "write.metadata.delete-after-commit.enabled": "true",
    }


def order_table(name: str, spec: TargetSpec) -> list[str]:
    return [f"ALTER TABLE {name} WRITE ORDERED BY {_names(spec.cluster_by)}"] if spec.cluster_by else []


def change_table(name: str, fit: Fit) -> list[str]:
    """What makes the table take the batch. All of it leaves the rows that are there as they are: a load that is
    overtaken does no harm."""
    statements = [f"ALTER TABLE {name} RENAME COLUMN {spark_name(a)} TO {spark_name(b)}" for a, b in fit.renamed]
    statements += [
        f"ALTER TABLE {name} ALTER COLUMN {spark_name(column)} TYPE {kind.simpleString()}"
        for column, kind in fit.widened
    ]
    if fit.added:
        statements.append(f"ALTER TABLE {name} ADD COLUMNS ({_columns(fit.added)})")
    return statements


def drop_partitions(name: str, fields: Iterable[str]) -> list[str]:
    """For rows to come; those that are there keep their place."""
    return [f"ALTER TABLE {name} DROP PARTITION FIELD {spark_name(field)}" for field in fields]


def add_partitions(name: str, columns: Iterable[str]) -> list[str]:
    return [f"ALTER TABLE {name} ADD PARTITION FIELD {spark_name(column)}" for column in columns]


def drop_columns(name: str, columns: Iterable[str]) -> list[str]:
    return [f"ALTER TABLE {name} DROP COLUMN {spark_name(column)}" for column in columns]


def set_property(name: str, key: str, value: str) -> str:
    return f"ALTER TABLE {name} SET TBLPROPERTIES ({table_properties({key: value})})"


def _columns(fields: Iterable[StructField]) -> str:
    return ", ".join(f"{spark_name(f.name)} {sql_type(f.dataType)}" for f in fields)


def _names(columns: Iterable[str]) -> str:
    return ", ".join(map(spark_name, columns))
