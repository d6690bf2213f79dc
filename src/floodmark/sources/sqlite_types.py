"""SQLite lets any value into any column. Values therefore travel as text and Spark's ANSI cast makes the declared type
of them, which refuses by name what does not fit, where SQLite's own cast would turn it into 0."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from floodmark.model.table import Column, CursorKind
from floodmark.sources.sql import quote

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
        text = f"CASE typeof({name}) WHEN 'real' THEN printf('%!.17g', {name}) ELSE CAST({name} AS TEXT) END"
        # A decimal that was stored as a real is meant to its declared digits: 15 of them are exact.
        text = text.replace("%!.17g", "%!.15g") if spark.startswith("decimal") else text
        return f"{text} AS {name}"
    return f"CAST({name} AS TEXT) AS {name}"
