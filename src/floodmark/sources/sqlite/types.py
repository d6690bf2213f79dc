"""SQLite lets any value into any column. Values therefore travel as text and Spark makes the declared type of them. It
refuses by name what does not fit, where SQLite's own cast would turn it into 0."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from floodmark.connections.names import quote
from floodmark.model.table import Column, CursorKind
from floodmark.sources.wire import WIDEST, Refuse, Wire

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

_FORMS = {
    "date": r"^\d{4}-\d\d-\d\d$",
    "timestamp": r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6}0*)?)?(Z|[+-]\d\d:?\d\d)?)?$",
}
"""Spark would read more than these: a year alone, a date with its time cut off, today for an hour without a day."""

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
        digits, scale = int(precise[1]), int(precise[2] or 0)
        fits = digits <= WIDEST and scale <= digits
        return SqliteType("other", f"decimal({digits},{scale})" if fits else "string")
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


def wire_of(column: Column) -> Wire:
    """The value, and beside it what must be refused although it would pass for one."""
    kind, x = type_of(column.declared).spark, quote(column.name)
    if kind == "binary":
        # Text is taken by its bytes; a number has none.
        number = f"CASE WHEN typeof({x}) IN ('integer', 'real') THEN CAST({x} AS TEXT) END"
        return Wire(
            column.name, ((x, "binary"), (number, "string")), lambda parts, refuse: _checked(kind, parts, refuse)
        )
    text = f"CASE typeof({x}) WHEN 'real' THEN {_real_text(x)} ELSE CAST({x} AS TEXT) END"
    odd = [f"WHEN typeof({x}) = 'blob' THEN 'the BLOB ' || substr(hex({x}), 1, 40)", *_odd(kind, x)]
    make = _text if kind == "string" else lambda parts, refuse: _parsed(kind, parts, refuse)
    return Wire(column.name, ((text, "string"), (f"CASE {' '.join(odd)} END", "string")), make)


def _real_text(x: str) -> str:
    """Without loss: 15 digits are what people wrote, where they lead back to the same value; 17 always do."""
    short, exact = f"printf('%!.15g', {x})", f"printf('%!.17g', {x})"
    return f"CASE WHEN CAST({short} AS REAL) = {x} THEN {short} ELSE {exact} END"


def _odd(kind: str, x: str) -> list[str]:
    if kind == "string":
        # Marks the character that broken bytes are read as, where it is really there.
        return [f"WHEN instr({x}, char(65533)) > 0 THEN ''"]
    if kind == "double":
        big = f"{x} NOT BETWEEN {-(2**53)} AND {2**53}"
        inexact = f"{big} AND (CAST(CAST({x} AS REAL) AS INTEGER) <> {x} OR {x} = {2**63 - 1})"
        return [f"WHEN typeof({x}) = 'integer' AND {inexact} THEN CAST({x} AS TEXT)"]
    if kind.startswith("decimal"):
        # What lies beyond the 15th digit is how a real is stored, not what somebody wrote.
        rounded = f"CAST(printf('%!.{kind.rpartition(',')[2][:-1]}f', {x}) AS REAL)"
        return [f"WHEN typeof({x}) = 'real' AND abs({x} - {rounded}) > abs({x}) * 1e-15 THEN {_real_text(x)}"]
    return []


def _text(parts: Sequence[SparkColumn], refuse: Refuse) -> SparkColumn:
    from pyspark.sql import functions as F

    value, odd = parts
    broken = odd.isNull() & value.contains("\ufffd")
    return (
        F.when(odd != "", refuse(odd, "which is no text"))
        .when(broken, refuse(value, "which is not UTF-8"))
        .otherwise(value)
    )


def _parsed(kind: str, parts: Sequence[SparkColumn], refuse: Refuse) -> SparkColumn:
    text = parts[0]
    value = text.try_cast(kind)
    if kind in _FORMS:
        from pyspark.sql import functions as F

        value = F.when(text.rlike(_FORMS[kind]), value)
    return _checked(kind, (text, parts[1]), refuse, value)


def _checked(kind: str, parts: Sequence[SparkColumn], refuse: Refuse, value: SparkColumn | None = None) -> SparkColumn:
    from pyspark.sql import functions as F

    raw, odd = parts
    why = f"which is no {kind}"
    checked = F.when(odd.isNotNull(), refuse(odd, why))
    if value is None:
        return checked.otherwise(raw)
    return checked.otherwise(F.coalesce(value, F.when(raw.isNotNull(), refuse(raw, why))))
