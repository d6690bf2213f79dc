"""The statements that a Delta load is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from floodmark.model.names import spark_name
from floodmark.model.target import TargetSpec
from floodmark.targets.delta.log import OURS
from floodmark.targets.lake_sql import table_properties
from floodmark.targets.lake_types import field_names, sql_type
from floodmark.targets.schema import Fit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


UNUSUAL = " ,;{}()\n\t="


def table_at(path: str) -> str:
    return f"delta.{spark_name(path)}"


def create_table(path: str, batch: DataFrame, spec: TargetSpec, pipeline: str) -> list[str]:
    columns = ", ".join(f"{spark_name(f.name)} {sql_type(f.dataType)}" for f in batch.schema.fields)
    layout = ""
    if spec.partition_by:
        layout = f" PARTITIONED BY ({', '.join(map(spark_name, spec.partition_by))})"
    elif spec.cluster_by:
        layout = f" CLUSTER BY ({', '.join(map(spark_name, spec.cluster_by))})"
    properties = f" TBLPROPERTIES ({table_properties(_settings(batch, spec) | {OURS: pipeline})})"
    create = f"CREATE TABLE IF NOT EXISTS {table_at(path)} ({columns}) USING DELTA"
    if spec.cluster_by and any(ord(char) > 0xFFFF for char in create):
        # Delta's parser counts such a character as one and then cuts CLUSTER BY out a place too early.
        return [f"{create}{properties}", cluster_table(path, spec)]
    return [f"{create}{layout}{properties}"]


def _settings(batch: DataFrame, spec: TargetSpec) -> dict[str, str]:
    vectors = "true" if spec.matches_keys and spec.deletion_vectors else "false"
    settings = {"delta.enableDeletionVectors": vectors}
    if any(char in UNUSUAL for name in field_names(batch.schema.fields) for char in name):
        settings["delta.columnMapping.mode"] = "name"  # Parquet itself can't name such columns
    return settings


def prepare_again(path: str, batch: DataFrame, spec: TargetSpec) -> str:
    """For a table of ours that nothing is in yet, before an overwrite gives it other columns."""
    return set_properties(path, _settings(batch, spec))


def set_properties(path: str, properties: Mapping[str, str]) -> str:
    return f"ALTER TABLE {table_at(path)} SET TBLPROPERTIES ({table_properties(properties)})"


def cluster_table(path: str, spec: TargetSpec) -> str:
    """An overwrite takes the clustering off a table, and the writer's own clusterBy does not put it back."""
    return f"ALTER TABLE {table_at(path)} CLUSTER BY ({', '.join(map(spark_name, spec.cluster_by))})"


def change_table(path: str, fit: Fit, properties: Mapping[str, str]) -> list[str]:
    """What makes the table take the batch, each a commit of its own: a run that dies in between leaves the rest to the
    next."""
    table, statements = table_at(path), []
    unusual = any(char in UNUSUAL for name in field_names(fit.added) for char in name)
    wanted = {"delta.columnMapping.mode": "name"} if fit.renamed or unusual else {}
    if fit.widened:
        wanted["delta.enableTypeWidening"] = "true"
    if any(kind.typeName() == "timestamp_ntz" for kind in _new_types(fit)):
        wanted["delta.feature.timestampNtz"] = "supported"
    if missing := {k: v for k, v in wanted.items() if properties.get(k) != v}:
        statements.append(f"ALTER TABLE {table} SET TBLPROPERTIES ({table_properties(missing)})")
    statements += [f"ALTER TABLE {table} RENAME COLUMN {spark_name(a)} TO {spark_name(b)}" for a, b in fit.renamed]
    statements += [
        f"ALTER TABLE {table} ALTER COLUMN {spark_name(name)} TYPE {kind.simpleString()}" for name, kind in fit.widened
    ]
    if fit.added:
        columns = ", ".join(f"{spark_name(f.name)} {sql_type(f.dataType)}" for f in fit.added)
        statements.append(f"ALTER TABLE {table} ADD COLUMNS ({columns})")
    return statements


def _new_types(fit: Fit) -> list[DataType]:
    return [*(field.dataType for field in fit.added), *(kind for _, kind in fit.widened)]
