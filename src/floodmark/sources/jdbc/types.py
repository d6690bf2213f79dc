"""What becomes of each type behind a JDBC driver. Spark's reader rounds wide decimals, takes a time for a moment of
1970, and passes dates and times through calendars that change in 1582: so these travel as the driver's own text, and
Spark makes the type of it or refuses the value by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from floodmark.exact import NUMBER, rounds
from floodmark.model.table import Column, CursorKind
from floodmark.sources.wire import Refuse, Wire

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql.types import StructField

_KINDS: dict[str, CursorKind | Literal["date"]] = {
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp",
    "byte": "integer",
    "short": "integer",
    "integer": "integer",
    "long": "integer",
    "string": "text",
    "varchar": "text",
    "date": "date",
}

_DAY = r"[+-]?\d{4,7}-\d\d-\d\d"
_HOUR = r"[ T]\d\d:\d\d(:\d\d(\.\d{1,6}0*)?)?"
_FORMS = {
    "date": f"^{_DAY}$",
    "timestamp_ntz": f"^{_DAY}{_HOUR}$",
    "timestamp": rf"^{_DAY}{_HOUR} ?(Z|UTC|[+-]\d{{1,2}}(:?\d\d)?)$",
}
"""Spark would read more than these: a date with its time cut off, nanoseconds, a moment without its zone."""


@dataclass(frozen=True)
class JdbcColumn:
    """`spark` is the type that arrives."""

    name: str
    declared: str
    spark: str
    kind: CursorKind | Literal["date", "other"]

    @property
    def column(self) -> Column:
        return Column(self.name, self.declared, self.kind, zoned=self.spark == "timestamp")


def column_of(field: StructField) -> JdbcColumn:
    """From what Spark makes of a column, and from what it says beside that about the driver's own type."""
    found, name = field.dataType, field.dataType.typeName()
    theirs = str(field.metadata.get("jdbcClientType", "")).lower()
    if _is_text(field, name, theirs):
        return JdbcColumn(field.name, theirs or name, "string", "other")
    if name == "double" and theirs == "real":
        return JdbcColumn(field.name, theirs, "float", "other")
    whole = name == "decimal" and getattr(found, "scale", 1) == 0
    spark = "string" if name in ("char", "varchar") else found.simpleString()
    return JdbcColumn(field.name, found.simpleString(), spark, "integer" if whole else _KINDS.get(name, "other"))


def _is_text(field: StructField, name: str, theirs: str) -> bool:
    """What no type of Spark and Delta can hold."""
    metadata: dict[str, Any] = field.metadata
    if name == "time" or metadata.get("logical_time_type"):
        return True
    if name.startswith("timestamp"):
        return theirs.startswith("time") and not theirs.startswith("timestamp")  # a time of day with its zone
    if name == "decimal":
        # Spark has fewer digits, and took them off the scale; or there is no scale to tell.
        scale = getattr(field.dataType, "scale", 0)
        return theirs == "decfloat" or max(int(metadata.get("scale", scale)), 0) != scale
    return name == "binary" and theirs in ("uuid", "uniqueidentifier")


def cursor_column(column: Column) -> JdbcColumn:
    """Back from a cursor's column, whose kind says all that is needed."""
    moment = "timestamp" if column.zoned else "timestamp_ntz"
    spark = {"timestamp": moment, "text": "string"}.get(column.kind, column.declared)
    return JdbcColumn(column.name, column.declared, spark, column.kind)


def wire_of(column: JdbcColumn, quoted: str) -> Wire:
    """Read as text, Spark asks the driver for its text: no cast that each database spells in its own way."""
    kind = column.spark
    if kind not in _FORMS and not kind.startswith("decimal"):
        return Wire(column.name, ((quoted, kind),), lambda parts, _: parts[0])

    def make(parts: Sequence[SparkColumn], refuse: Refuse) -> SparkColumn:
        from pyspark.sql import functions as F

        text = parts[0]
        good = text.rlike(_FORMS.get(kind, NUMBER))
        if kind not in _FORMS:
            good &= ~rounds(text, int(kind.rstrip(")").rpartition(",")[2]))
        misfit = F.when(text.isNotNull(), refuse(text, f"which no {kind} of Spark can be"))
        return F.coalesce(F.when(good, text.try_cast(kind)), misfit)

    return Wire(column.name, ((quoted, "string"),), make)
