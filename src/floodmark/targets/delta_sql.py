"""The statements that a Delta load is made of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from floodmark.errors import Refused
from floodmark.model.names import spark_name
from floodmark.model.outcome import Load
from floodmark.model.position import Position, Scalar
from floodmark.model.spec import TargetSpec
from floodmark.targets.delta_types import field_names, sql_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType


UNUSUAL = " ,;{}()\n\t="


def table_at(path: str) -> str:
    return f"delta.{spark_name(path)}"


def create_table(path: str, batch: DataFrame, spec: TargetSpec) -> list[str]:
    columns = ", ".join(f"{spark_name(f.name)} {sql_type(f.dataType)}" for f in batch.schema.fields)
    layout = ""
    if spec.partition_by:
        layout = f" PARTITIONED BY ({', '.join(map(spark_name, spec.partition_by))})"
    elif spec.cluster_by:
        layout = f" CLUSTER BY ({', '.join(map(spark_name, spec.cluster_by))})"
    vectors = "true" if spec.mode == "upsert" and spec.deletion_vectors else "false"
    settings = {"delta.enableDeletionVectors": vectors}
    if any(char in UNUSUAL for name in field_names(batch.schema) for char in name):
        settings["delta.columnMapping.mode"] = "name"  # Parquet itself can't name such columns
    properties = " TBLPROPERTIES (" + ", ".join(f"'{k}' = '{v}'" for k, v in settings.items()) + ")"
    create = f"CREATE TABLE IF NOT EXISTS {table_at(path)} ({columns}) USING DELTA"
    if spec.cluster_by and any(ord(char) > 0xFFFF for char in create):
        # Delta's parser counts such a character as one and then cuts CLUSTER BY out a place too early.
        return [f"{create}{properties}", cluster_table(path, spec)]
    return [f"{create}{layout}{properties}"]


def cluster_table(path: str, spec: TargetSpec) -> str:
    """An overwrite takes the clustering off a table, and the writer's own clusterBy does not put it back."""
    return f"ALTER TABLE {table_at(path)} CLUSTER BY ({', '.join(map(spark_name, spec.cluster_by))})"


def merge(path: str, batch: str, schema: StructType, keys: Sequence[str], cursor: Sequence[str]) -> str:
    """The higher cursor wins; at equal cursors the later read does, if it says anything new: rows that were read again
    only because they lie above the mark are neither rewritten nor counted."""
    names = [f.name for f in schema.fields]
    on = " AND ".join(f"t.{spark_name(k)} = s.{spark_name(k)}" for k in keys)
    assignments = ", ".join(f"t.{spark_name(n)} = s.{spark_name(n)}" for n in names)
    differs = _differs(schema, keys)
    wins = differs
    # The database's collation orders text, Spark's binary order may differ: there the later read simply wins.
    if cursor and not any(_is_text(schema[c].dataType) for c in cursor):
        ours = ", ".join(f"s.{spark_name(c)}" for c in cursor)
        theirs = ", ".join(f"t.{spark_name(c)}" for c in cursor)
        wins = f"struct({ours}) > struct({theirs}) OR (struct({ours}) <=> struct({theirs}) AND ({differs}))"
    columns, values = ", ".join(map(spark_name, names)), ", ".join(f"s.{spark_name(n)}" for n in names)
    return (
        f"MERGE INTO {table_at(path)} AS t USING {spark_name(batch)} AS s ON {on} "
        f"WHEN MATCHED AND ({wins}) THEN UPDATE SET {assignments} "
        f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({values})"
    )


def _differs(schema: StructType, keys: Sequence[str]) -> str:
    compared = [f.name for f in schema.fields if f.name not in keys and f.dataType.typeName() not in ("map", "variant")]
    if len(compared) + len(keys) < len(schema.fields):
        return "true"  # maps can't be compared: take the later read
    same = " AND ".join(f"s.{spark_name(n)} <=> t.{spark_name(n)}" for n in compared)
    return f"NOT ({same})" if same else "false"


def _is_text(kind: DataType) -> bool:
    return kind.typeName() in ("string", "varchar", "char")


def range_predicate(schema: StructType, load: Load) -> str:
    """The window as a condition on the target, for a load that replaces what the range held before."""
    if not load.cursor or any(_is_text(schema[c].dataType) for c in load.cursor):
        raise Refused(
            "rows from before the reset are in the table already, and a range of text can't be replaced in it",
            hint="`--full-refresh` loads the whole table again in one commit",
        )
    edges = [(load.intent.after, ">="), (load.intent.until, "<")]
    parts = [_compare(schema, load, position, operator) for position, operator in edges if position is not None]
    return " AND ".join(parts) or "true"


def _compare(schema: StructType, load: Load, position: Position, operator: str) -> str:
    """Lexicographic, spelt out: replaceWhere takes plain column conditions."""
    names = load.cursor[: len(position.values)]
    values = [_literal(v, schema[n].dataType, load.timezone) for v, n in zip(position.values, names, strict=True)]
    alternatives = []
    for place, name in enumerate(names):
        equal = [f"{spark_name(names[i])} = {values[i]}" for i in range(place)]
        sign = operator if place == len(names) - 1 else operator[0]
        alternatives.append(" AND ".join([*equal, f"{spark_name(name)} {sign} {values[place]}"]))
    return "(" + " OR ".join(f"({a})" for a in alternatives) + ")"


def _literal(value: Scalar, kind: DataType, timezone: str | None) -> str:
    if isinstance(value, datetime):
        wall = value.astimezone(ZoneInfo(timezone) if timezone else UTC).replace(tzinfo=None)
        text = wall.isoformat(sep=" ", timespec="microseconds")
        return f"TIMESTAMP_NTZ '{text}'" if kind.typeName() == "timestamp_ntz" else f"TIMESTAMP '{text}Z'"
    return str(value)
