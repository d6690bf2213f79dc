"""What becomes of each Postgres type. Numbers, booleans, bytes and text travel as they are; times as microseconds since
1970, because the driver's own way passes through calendars that change in 1582 and through the JVM's zone; all else as
Postgres' own text. docs/types.md shows the result for each type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from floodmark.connections.names import quote
from floodmark.model.table import Column, CursorKind
from floodmark.sources.wire import WIDEST, Refuse, Wire

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

SESSION = "SET timezone = 'UTC'; SET intervalstyle = 'iso_8601'; SET bytea_output = 'hex'"
"""The text of a value must not depend on how the server is set up."""

_RESOLVE = """
WITH RECURSIVE asked (place, name, fixed, key_place, type, modifier, ndims, indexed) AS (%(asked)s),
kind AS (
  SELECT place, type, modifier, ndims::int, 0 AS depth FROM asked
  UNION ALL
  SELECT k.place, CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE e.oid END,
         CASE t.typtype WHEN 'd' THEN t.typtypmod ELSE k.modifier END,
         greatest(k.ndims, t.typndims), k.depth + CASE t.typtype WHEN 'd' THEN 0 ELSE 1 END
  FROM kind k JOIN pg_type t ON t.oid = k.type LEFT JOIN pg_type e ON e.typarray = t.oid
  WHERE t.typtype = 'd' OR e.oid IS NOT NULL
)
SELECT a.name, a.fixed, a.key_place, format_type(k.type, NULL), t.typtype::text, k.modifier, k.ndims, k.depth,
       a.indexed
FROM asked a JOIN kind k USING (place) JOIN pg_type t ON t.oid = k.type
WHERE t.typtype <> 'd' AND NOT EXISTS (SELECT FROM pg_type e WHERE e.typarray = t.oid)
ORDER BY a.place
"""
"""Domains are followed down to the type they stand for, arrays down to their elements."""

COLUMNS = _RESOLVE % {
    "asked": """
  SELECT a.attnum, a.attname, a.attnotnull,
         coalesce(array_position((i.indkey::int[])[0:i.indnkeyatts - 1], a.attnum::int), 0),
         a.atttypid, a.atttypmod, a.attndims,
         EXISTS (SELECT FROM pg_index x WHERE x.indrelid = a.attrelid AND x.indkey[0] = a.attnum
                 AND x.indpred IS NULL AND x.indisvalid)
  FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
  WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped"""
}
"""Of a table. A slice of `indkey`, which itself counts from 0 and also holds columns that are only INCLUDEd."""

RESULT = _RESOLVE % {
    "asked": """
  SELECT q.place, q.name, false, 0, q.type, q.modifier, 0, false
  FROM unnest(%s::text[], %s::oid[], %s::int[]) WITH ORDINALITY AS q (name, type, modifier, place)"""
}
"""Of what a query returns: names, types and modifiers as the driver reports them."""

_KINDS: dict[str, CursorKind | Literal["date"]] = {
    "timestamp with time zone": "timestamp",
    "timestamp without time zone": "timestamp",
    "smallint": "integer",
    "integer": "integer",
    "bigint": "integer",
    "text": "text",
    "character varying": "text",
    "character": "text",
    "uuid": "text",
    "date": "date",
}

_AS_IT_IS = {
    "smallint": "smallint",
    "integer": "int",
    "bigint": "bigint",
    "boolean": "boolean",
    "real": "float",
    "double precision": "double",
    "bytea": "binary",
    "text": "string",
    "character varying": "string",
    "character": "string",  # a cast to text would take its blanks off
}

_LAST_DAY = 2**31 - 1
_LAST_MOMENT = 2**63 - 1
"""Stand for infinity, as in Postgres itself; their negatives for -infinity."""


@dataclass(frozen=True)
class PgColumn:
    """A row of COLUMNS or RESULT. `base` is the type without its domains, or that of an array's elements; `depth` says
    how many arrays are around it, `ndims` what was declared."""

    name: str
    notnull: bool
    key_place: int
    base: str
    category: str
    modifier: int
    ndims: int
    depth: int
    indexed: bool = False

    @property
    def column(self) -> Column:
        declared = self.base + "[]" * max(self.depth, self.ndims if self.depth else 0)
        is_time = declared.startswith("timestamp")
        precision = self.modifier if is_time and self.modifier >= 0 else 6
        zoned = declared == "timestamp with time zone"
        return Column(
            self.name, declared, _KINDS.get(declared, "other"), not self.notnull, zoned, precision, self.indexed
        )

    @property
    def decimal(self) -> str | None:
        """Spark's type for a numeric; None when it has more digits than Spark, or no limit at all."""
        if self.base != "numeric" or self.modifier < 0:
            return None
        precision, scale = (self.modifier - 4) >> 16 & 0xFFFF, ((self.modifier - 4 & 0x7FF) ^ 1024) - 1024
        # numeric(5,-2) holds 7 digits before the point, numeric(2,4) four behind it.
        digits = max(precision - min(scale, 0), scale)
        return f"decimal({digits},{max(scale, 0)})" if digits <= WIDEST else None


def wire_of(column: PgColumn) -> Wire:
    x = quote(column.name)
    if column.depth > 1 or (column.depth and (column.ndims > 1 or column.category == "c")) or column.category == "c":
        return _plain(column, f"to_json({x})::text", "string")
    if column.depth:
        return _array(column, x)
    if column.base in _AS_IT_IS:
        return _plain(column, x, _AS_IT_IS[column.base])
    if column.base == "date":
        return _date(column, x)
    if column.base.startswith("timestamp"):
        return _timestamp(column, x)
    if column.decimal is not None:
        return _decimal(column, x, column.decimal)
    special = {
        "oid": (f"{x}::bigint", "bigint"),
        "money": (f"{x}::numeric::text", "string"),  # its own text depends on the server's language
        "inet": (f"nullif(format('%s', {x}), '')", "string"),  # a cast would add /32 to each address
    }
    return _plain(column, *special.get(column.base, (f"{x}::text", "string")))


def _plain(column: PgColumn, sql: str, kind: str) -> Wire:
    return Wire(column.name, ((sql, kind),), lambda parts, _: parts[0])


def _date(column: PgColumn, x: str) -> Wire:
    sql = (
        f"CASE WHEN isfinite({x}) THEN {x} - DATE '1970-01-01' "
        f"WHEN {x} = 'infinity' THEN {_LAST_DAY} WHEN {x} = '-infinity' THEN -{_LAST_DAY} END"
    )

    def make(parts: Sequence[SparkColumn], refuse: Refuse) -> SparkColumn:
        from pyspark.sql import functions as F

        why = "which no date of Spark can be"
        return (
            F.when(parts[0] == _LAST_DAY, refuse("infinity", why))
            .when(parts[0] == -_LAST_DAY, refuse("-infinity", why))
            .otherwise(F.date_from_unix_date(parts[0]))
        )

    return Wire(column.name, ((sql, "int"),), make)


def _timestamp(column: PgColumn, x: str) -> Wire:
    # In two parts: up to Postgres 13 `extract` is a float, which is exact for whole seconds only.
    micros = (
        f"extract(epoch FROM date_trunc('second', {x}))::bigint * 1000000 + extract(microseconds FROM {x})::bigint "
        "% 1000000"
    )
    sql = (
        f"CASE WHEN {x} > '-infinity' AND {x} < '294247-01-01' THEN {micros} "
        f"WHEN {x} > '-infinity' THEN {_LAST_MOMENT} WHEN {x} = '-infinity' THEN -{_LAST_MOMENT} END"
    )

    def make(parts: Sequence[SparkColumn], refuse: Refuse) -> SparkColumn:
        from pyspark.sql import functions as F

        moment = F.timestamp_micros(parts[0])
        if not column.column.zoned:
            # A cast from timestamp would bring the session's zone in.
            moment = F.timestamp_add("MICROSECOND", parts[0], F.lit("1970-01-01 00:00:00").cast("timestamp_ntz"))
        why = "which no timestamp of Spark can be"
        return (
            F.when(parts[0] == _LAST_MOMENT, refuse("infinity or a time after the year 294246", why))
            .when(parts[0] == -_LAST_MOMENT, refuse("-infinity", why))
            .otherwise(moment)
        )

    return Wire(column.name, ((sql, "bigint"),), make)


def _decimal(column: PgColumn, x: str, kind: str) -> Wire:
    def make(parts: Sequence[SparkColumn], refuse: Refuse) -> SparkColumn:
        from pyspark.sql import functions as F

        misfit = F.when(parts[0].isNotNull(), refuse(parts[0], f"which no {kind} of Spark can be"))
        return F.coalesce(parts[0].try_cast(kind), misfit)

    return Wire(column.name, ((f"{x}::text", "string"),), make)


def _array(column: PgColumn, x: str) -> Wire:
    """As JSON of texts. Postgres lets more dimensions into an array than were declared; Spark can't."""
    sql = f"CASE WHEN array_ndims({x}) > 1 THEN {x}::text ELSE to_json({x}::text[])::text END"
    kind = _AS_IT_IS.get(column.base) or column.decimal or "string"
    kind = "string" if kind == "binary" else kind

    def make(parts: Sequence[SparkColumn], refuse: Refuse) -> SparkColumn:
        from pyspark.sql import functions as F

        nested = f"which is no array of one dimension; declared as {column.base}[][] it arrives as JSON"
        misfit = F.when(parts[0].isNotNull(), refuse(parts[0], nested))
        flat = F.coalesce(F.from_json(parts[0], "array<string>"), misfit)
        if kind == "string":
            return flat
        odd = F.exists(flat, lambda item: item.isNotNull() & item.try_cast(kind).isNull())
        return F.when(odd, refuse(parts[0], f"which no array<{kind}> of Spark can be")).otherwise(
            flat.try_cast(f"array<{kind}>")
        )

    return Wire(column.name, ((sql, "string"),), make)
