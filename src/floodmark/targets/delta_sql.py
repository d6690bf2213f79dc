"""The statements that a Delta load is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from floodmark.errors import Refused
from floodmark.model.names import OP, PROVENANCE, spark_name
from floodmark.model.outcome import Load
from floodmark.model.position import Position, Scalar
from floodmark.model.target import TargetSpec
from floodmark.targets.delta_types import field_names, sql_type
from floodmark.targets.schema import Fit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType


UNUSUAL = " ,;{}()\n\t="


def table_at(path: str) -> str:
    return f"delta.{spark_name(path)}"


OURS = "floodmark.pipeline"
"""Property of a table that we made: as long as nothing is in it, it may be made again with other columns."""


def create_table(path: str, batch: DataFrame, spec: TargetSpec, pipeline: str) -> list[str]:
    columns = ", ".join(f"{spark_name(f.name)} {sql_type(f.dataType)}" for f in batch.schema.fields)
    layout = ""
    if spec.partition_by:
        layout = f" PARTITIONED BY ({', '.join(map(spark_name, spec.partition_by))})"
    elif spec.cluster_by:
        layout = f" CLUSTER BY ({', '.join(map(spark_name, spec.cluster_by))})"
    properties = f" TBLPROPERTIES ({_properties(_settings(batch, spec) | {OURS: pipeline})})"
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
    return f"ALTER TABLE {table_at(path)} SET TBLPROPERTIES ({_properties(properties)})"


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
        statements.append(f"ALTER TABLE {table} SET TBLPROPERTIES ({_properties(missing)})")
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


def _properties(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{_text(k)} = {_text(v)}" for k, v in settings.items())


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


Range = tuple[int, int]

T, S = "floodmark_table", "floodmark_source"
"""The table and the batch in conditions. `t` and `s` may be columns, and Delta then looks inside them."""


def merge(path: str, batch: str, schema: StructType, load: Load, ranges: Mapping[str, Range] | None = None) -> str:
    names = [f.name for f in schema.fields]
    values_of = {n: "'update'" if n == OP else f"{S}.{spark_name(n)}" for n in names}
    assignments = ", ".join(f"{T}.{spark_name(n)} = {value}" for n, value in values_of.items())
    columns, values = ", ".join(map(spark_name, names)), ", ".join(f"{S}.{spark_name(n)}" for n in names)
    update = "" if load.only_new else f"WHEN MATCHED AND ({wins(schema, load)}) THEN UPDATE SET {assignments} "
    return (
        f"MERGE INTO {table_at(path)} AS {T} USING {spark_name(batch)} AS {S} ON {same_row(load.keys, ranges or {})} "
        f"{update}WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({values})"
    )


def same_row(keys: Sequence[str], ranges: Mapping[str, Range]) -> str:
    """Of the table and the batch. `ranges` of keys say nothing that the keys' equality does not: they are what
    Delta leaves files out by."""
    on = " AND ".join(f"{T}.{spark_name(k)} = {S}.{spark_name(k)}" for k in keys)
    for key, (low, high) in ranges.items():
        on += f" AND {T}.{spark_name(key)} >= {low} AND {T}.{spark_name(key)} <= {high}"
    return on


def wins(schema: StructType, load: Load) -> str:
    """Whether the batch's row replaces the table's. The higher cursor wins; at equal cursors the later read
    does, if it says anything new: rows that were read again only because they lie above the mark are neither rewritten
    nor counted. So does a row without a cursor value. Above the mark the later read always wins: of two updates the
    last to commit may carry the earlier time."""
    differs = _differs(schema, load.keys)
    # The database's collation orders text, Spark's binary order may differ: there the later read simply wins.
    if not load.cursor or load.later_wins or any(_is_text(schema[c].dataType) for c in load.cursor):
        return differs
    ours, theirs = ", ".join(_ordered(load, f"{S}.")), ", ".join(_ordered(load, f"{T}."))
    later = f"struct({ours}) <=> struct({theirs}) OR {_ordered(load, f'{S}.')[0]} IS NULL"
    return f"struct({ours}) > struct({theirs}) OR (({later}) AND ({differs}))"


def _ordered(load: Load, prefix: str = "") -> list[str]:
    """The cursor as it orders rows."""
    names = [prefix + spark_name(c) for c in load.cursor]
    if load.fallback is not None:
        names[0] = f"coalesce({names[0]}, {prefix}{spark_name(load.fallback)})"
    return names


def _differs(schema: StructType, keys: Sequence[str]) -> str:
    rest = [f for f in schema.fields if f.name not in (*keys, *PROVENANCE)]
    compared = [f.name for f in rest if f.dataType.typeName() not in ("map", "variant")]
    if len(compared) < len(rest):
        return "true"  # maps can't be compared: take the later read
    same = " AND ".join(f"{S}.{spark_name(n)} <=> {T}.{spark_name(n)}" for n in compared)
    return f"NOT ({same})" if same else "false"


def _is_text(kind: DataType) -> bool:
    return kind.typeName() in ("string", "varchar", "char")


def range_predicate(schema: StructType, load: Load) -> str:
    """The window as a condition on the target, for a load that replaces what the range held before."""
    if not load.cursor or any(_is_text(schema[c].dataType) for c in load.cursor):
        trouble = "the cursor is text, whose order only the source knows" if load.cursor else "it has no cursor column"
        raise Refused(
            f"the range is in the table already, and it can't be replaced there: {trouble}",
            hint="`--full-refresh` loads the whole table again in one commit",
        )
    edges = [(load.intent.after, ">="), (load.intent.until, "<")]
    parts = [_compare(schema, load, position, operator) for position, operator in edges if position is not None]
    return " AND ".join(parts) or "true"


def _compare(schema: StructType, load: Load, position: Position, operator: str) -> str:
    """Lexicographic, spelt out: replaceWhere takes plain column conditions."""
    columns = load.cursor[: len(position.values)]
    names = _ordered(load)[: len(columns)]
    values = [_literal(v, schema[n].dataType, load.timezone) for v, n in zip(position.values, columns, strict=True)]
    alternatives = []
    for place, name in enumerate(names):
        equal = [f"{names[i]} = {values[i]}" for i in range(place)]
        sign = operator if place == len(names) - 1 else operator[0]
        alternatives.append(" AND ".join([*equal, f"{name} {sign} {values[place]}"]))
    return "(" + " OR ".join(f"({a})" for a in alternatives) + ")"


def _literal(value: Scalar, kind: DataType, timezone: str | None) -> str:
    if isinstance(value, datetime):
        wall = value.astimezone(ZoneInfo(timezone) if timezone else UTC).replace(tzinfo=None)
        text = wall.isoformat(sep=" ", timespec="microseconds")
        return f"TIMESTAMP_NTZ '{text}'" if kind.typeName() == "timestamp_ntz" else f"TIMESTAMP '{text}Z'"
    return str(value)
