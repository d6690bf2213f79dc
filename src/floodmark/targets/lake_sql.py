"""Statements that the lakes share: which row wins, a merge, a range as a condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from floodmark.model.names import DELETED, OP, PROVENANCE, spark_name
from floodmark.model.outcome import Load
from floodmark.model.position import Position, Scalar
from floodmark.targets.ranges import check_range, compared, wall_time

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

Range = tuple[int, int]

T, S = "floodmark_table", "floodmark_source"
"""The table and the batch in conditions. `t` and `s` may be columns, and Delta then looks inside them."""


def merge(into: str, batch: str, schema: StructType, load: Load, ranges: Mapping[str, Range] | None = None) -> str:
    """`into` is the table as SQL names it. Where the batch says that a row is deleted, the table's goes, unless it is
    newer."""
    names = [f.name for f in schema.fields if f.name != DELETED]
    values_of = {n: "'update'" if n == OP else f"{S}.{spark_name(n)}" for n in names}
    assignments = ", ".join(f"{T}.{spark_name(n)} = {value}" for n, value in values_of.items())
    columns, values = ", ".join(map(spark_name, names)), ", ".join(f"{S}.{spark_name(n)}" for n in names)
    gone = f"coalesce({S}.{spark_name(DELETED)}, false)"
    delete, alive = "", ""
    if DELETED in schema.names:
        delete, alive = f"WHEN MATCHED AND {gone} AND ({_not_older(schema, load)}) THEN DELETE ", f"AND NOT {gone} "
    update = f"{delete}WHEN MATCHED {alive}AND ({wins(schema, load)}) THEN UPDATE SET {assignments} "
    return (
        f"MERGE INTO {into} AS {T} USING {spark_name(batch)} AS {S} ON {same_row(load.keys, ranges or {})} "
        f"{'' if load.only_new else update}WHEN NOT MATCHED {alive}THEN INSERT ({columns}) VALUES ({values})"
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


def _not_older(schema: StructType, load: Load) -> str:
    """Whether a row that the batch says is deleted has the last word. It need not say anything else that is new."""
    if not load.cursor or load.later_wins or any(_is_text(schema[c].dataType) for c in load.cursor):
        return "true"
    ours, theirs = _ordered(load, f"{S}."), _ordered(load, f"{T}.")
    return f"struct({', '.join(ours)}) >= struct({', '.join(theirs)}) OR {ours[0]} IS NULL"


def _ordered(load: Load, prefix: str = "") -> list[str]:
    """The cursor as it orders rows."""
    names = [prefix + spark_name(c) for c in load.cursor]
    if load.fallback is not None:
        names[0] = f"coalesce({names[0]}, {prefix}{spark_name(load.fallback)})"
    return names


def _differs(schema: StructType, keys: Sequence[str]) -> str:
    rest = [f for f in schema.fields if f.name not in (*keys, *PROVENANCE, DELETED)]
    compared = [f.name for f in rest if f.dataType.typeName() not in ("map", "variant")]
    if len(compared) < len(rest):
        return "true"  # maps can't be compared: take the later read
    same = " AND ".join(f"{S}.{spark_name(n)} <=> {T}.{spark_name(n)}" for n in compared)
    return f"NOT ({same})" if same else "false"


def _is_text(kind: DataType) -> bool:
    return kind.typeName() in ("string", "varchar", "char")


def range_predicate(schema: StructType, load: Load) -> str:
    """The window as a condition on the target, for a load that replaces what the range held before."""
    check_range(load, has_order=not any(_is_text(schema[c].dataType) for c in load.cursor))
    edges = [(load.intent.after, ">="), (load.intent.until, "<")]
    parts = [_compare(schema, load, position, operator) for position, operator in edges if position is not None]
    return " AND ".join(parts) or "true"


def _compare(schema: StructType, load: Load, position: Position, operator: str) -> str:
    """replaceWhere takes plain column conditions."""
    columns = load.cursor[: len(position.values)]
    values = [_literal(v, schema[n].dataType, load) for v, n in zip(position.values, columns, strict=True)]
    return compared(_ordered(load)[: len(columns)], operator, values)


def _literal(value: Scalar, kind: DataType, load: Load) -> str:
    if isinstance(value, datetime):
        text = wall_time(value, load).isoformat(sep=" ", timespec="microseconds")
        return f"TIMESTAMP_NTZ '{text}'" if kind.typeName() == "timestamp_ntz" else f"TIMESTAMP '{text}Z'"
    return str(value)


def table_properties(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{text_literal(k)} = {text_literal(v)}" for k, v in settings.items())


def text_literal(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
