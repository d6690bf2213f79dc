"""MySQL's and MariaDB's types: how each is selected, what Spark makes of it, and what it refuses by name.

Times travel as text: the driver would hand them through the JVM's zone, and turn the zero date, which is no date, into
NULL or into another day. Spark makes the declared type of the text, and what does not fit fails the load."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from floodmark.model.table import Column, CursorKind
from floodmark.sources.wire import Refuse, Wire

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

MOST_DIGITS = 38
"""Of a decimal in Spark."""

_DECLARED = re.compile(r"(\w+)\s*(?:\((.*)\))?((?:\s+(?:unsigned|zerofill|signed))*)", re.S)
_TEXT = "CAST({} AS CHAR)"


@dataclass(frozen=True)
class MysqlType:
    kind: CursorKind | Literal["date", "other"]
    spark: str
    """The type in the batch."""
    select: str = "{}"
    """Over the quoted name."""
    sent: str = ""
    """The type on the wire, where it is another one."""
    precision: int = 6
    zoned: bool = False

    @property
    def wire(self) -> str:
        return self.sent or self.spark


_SIGNED = {"tinyint": "tinyint", "smallint": "smallint", "mediumint": "int", "int": "int", "bigint": "bigint"}
_UNSIGNED = {"tinyint": "smallint", "smallint": "int", "mediumint": "int", "int": "bigint", "bigint": "decimal(20,0)"}
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
_WORDS = ("enum", "set", "json", "inet4", "inet6")
_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")


def type_of(declared: str) -> MysqlType | None:
    """By the type as SHOW COLUMNS writes it; None for what can't be carried."""
    match = _DECLARED.fullmatch(declared.strip().lower())
    if match is None:
        return None
    name, inside, flags = match[1], match[2] or "", match[3]
    if name in _SIGNED:
        kinds = _UNSIGNED if "unsigned" in flags or "zerofill" in flags else _SIGNED
        return MysqlType("integer", kinds[name])
    if name in ("decimal", "numeric"):
        return _decimal(inside)
    if name in ("datetime", "timestamp", "date", "time", "year"):
        return _time(name, inside)
    if name in ("float", "double"):
        # Plainly selected, a float is cut to six digits.
        return MysqlType("other", name, "({} + 0e0)", "double")
    if name in _TEXTS:
        return MysqlType("text", "string")
    if name == "uuid":
        return MysqlType("text", "string", _TEXT)
    if name in _WORDS:
        return MysqlType("other", "string", _TEXT)
    if name in _BYTES:
        return MysqlType("other", "binary")
    return _bit(int(inside or 1)) if name == "bit" else None


def _decimal(inside: str) -> MysqlType:
    digits, _, scale = inside.partition(",")
    if int(digits or 10) > MOST_DIGITS:
        return MysqlType("other", "string", _TEXT)
    return MysqlType("other", f"decimal({digits or 10},{scale.strip() or 0})")


def _time(name: str, inside: str) -> MysqlType:
    if name == "datetime":
        return MysqlType("timestamp", "timestamp_ntz", _TEXT, "string", int(inside or 0))
    if name == "timestamp":
        # In the session's zone, which is UTC in ours.
        return MysqlType("timestamp", "timestamp", "CONCAT({}, '+00:00')", "string", int(inside or 0), zoned=True)
    if name == "date":
        return MysqlType("date", "date", _TEXT, "string")
    # From -838:59:59 to 838:59:59: a span as much as a time of day.
    return MysqlType("other", "string", _TEXT) if name == "time" else MysqlType("integer", "int", "CAST({} AS SIGNED)")


def _bit(length: int) -> MysqlType:
    if length == 1:
        return MysqlType("other", "boolean", "CAST({} AS UNSIGNED)", "int")
    return MysqlType("other", "bigint" if length < 64 else "decimal(20,0)", "CAST({} AS UNSIGNED)")


def wire_of(column: Column, quoted: str) -> Wire:
    found = type_of(column.declared)
    assert found is not None  # noqa: S101 - describe has refused what can't be carried

    def make(parts: Sequence[SparkColumn], refuse: Refuse) -> SparkColumn:
        from pyspark.sql import functions as F

        value = parts[0]
        if not found.sent:
            return value
        if found.sent != "string":
            return value.cast(found.spark)
        moment = value.try_cast(found.spark)
        why = f"which is no {'date' if found.kind == 'date' else 'time'}: make it NULL"
        odd = refuse(F.regexp_replace(value, r"\+00:00$", ""), why)
        return F.when(value.isNotNull() & moment.isNull(), odd).otherwise(moment)

    return Wire(column.name, ((found.select.format(quoted), found.wire),), make)


_NOTES = {
    "tinyint(1)": "also what BOOLEAN declares; it holds 2 as well as 0 and 1, so it stays a number",
    "bigint unsigned": "beyond Spark's bigint",
    "decimal(39,2)": "more digits than Spark's decimals have: text, every digit of it",
    "datetime(6)": "no zone: `timezone:` names it for a cursor; 0000-00-00 is refused by name",
    "timestamp(6)": "read in UTC; 0000-00-00 is refused by name",
    "date": "0000-00-00 and 2026-00-00 are refused by name",
    "time": "-838:59:59 to 838:59:59, so it is text",
    "geometry": "refused by name: select it with ST_AsText in a query or a view",
}
_SHOWN = (
    *("tinyint", "tinyint(1)", "smallint", "mediumint", "int", "bigint", "tinyint unsigned", "smallint unsigned"),
    *("int unsigned", "bigint unsigned", "decimal(10,2)", "decimal(39,2)", "float", "double", "bit(1)", "bit(8)"),
    *("bit(64)", "datetime(6)", "timestamp(6)", "date", "time", "year", *_TEXTS, *_WORDS, "uuid", *_BYTES, "geometry"),
)


def listed() -> list[tuple[str, str, str]]:
    """Declared type, Spark type, note: for the docs."""
    found = ((declared, type_of(declared)) for declared in _SHOWN)
    return [(name, "–" if kind is None else kind.spark, _NOTES.get(name, "")) for name, kind in found]
