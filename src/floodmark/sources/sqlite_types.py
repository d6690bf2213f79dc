"""SQLite lets any value into any column. Values therefore travel as text and Spark makes the declared type of them. It
refuses by name what does not fit, where SQLite's own cast would turn it into 0."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from floodmark.model.names import spark_name
from floodmark.model.table import Column, CursorKind
from floodmark.sources.sql import quote

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

_PRECISE = re.compile(r"(?:DECIMAL|NUMERIC)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")


@dataclass(frozen=True)
class SqliteType:
    kind: CursorKind | Literal["date", "other"]
    spark: str
    """The type that the text becomes."""


def type_of(declared: str) -> SqliteType:
    """By SQLite's affinity rules, with the dates, booleans and decimals that people declare taken at their word."""
    name = declared.upper()
    if precise := _PRECISE.search(name):
        return SqliteType("other", f"decimal({precise[1]},{precise[2] or 0})")
    if "DATETIME" in name or "TIMESTAMP" in name:
        return SqliteType("timestamp", "timestamp")
    if name == "DATE":
        return SqliteType("date", "date")
    if "BOOL" in name:
        return SqliteType("other", "boolean")
    if "INT" in name:
        return SqliteType("integer", "bigint")
    if any(word in name for word in ("CHAR", "CLOB", "TEXT", "STRING", "JSON", "UUID")):
        return SqliteType("text", "string")
    if "BLOB" in name:
        return SqliteType("other", "binary")
    if any(word in name for word in ("REAL", "FLOA", "DOUB", "DECIMAL", "NUMERIC")):
        return SqliteType("other", "double")
    return SqliteType("text", "string")


def as_text(column: Column) -> str:
    """The column's value as text without loss: plain CAST would keep 15 digits of a real."""
    name = quote(column.name)
    spark = type_of(column.declared).spark
    if spark == "binary":
        return f"{name} AS {name}"
    if spark == "double" or spark.startswith("decimal"):
        # 15 digits are what people wrote, where they lead back to the same value; 17 always do.
        short, exact = f"printf('%!.15g', {name})", f"printf('%!.17g', {name})"
        real = f"CASE WHEN CAST({short} AS REAL) = {name} THEN {short} ELSE {exact} END"
        return f"CASE typeof({name}) WHEN 'real' THEN {real} ELSE CAST({name} AS TEXT) END AS {name}"
    return f"CAST({name} AS TEXT) AS {name}"


def typed(column: Column, table: str) -> SparkColumn:
    """The text as the declared type; what does not fit fails the load by name."""
    from pyspark.sql import functions as F

    text = F.col(spark_name(column.name))
    kind = type_of(column.declared).spark
    if kind in ("string", "binary"):
        return text.alias(column.name)
    value = text.try_cast(kind)
    said = F.concat(F.lit(f'floodmark: column "{column.name}" of {table} holds '), text, F.lit(f", which is no {kind}"))
    return F.when(text.isNotNull() & value.isNull(), F.raise_error(said)).otherwise(value).alias(column.name)
