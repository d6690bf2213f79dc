"""Whether a cast keeps the value: Spark's own rounds a decimal and cuts a time without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql.types import DataType

NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_DAY = r"^\s*[+-]?\d{4,7}-\d{1,2}-\d{1,2}"
_BEYOND_MICROS = r"\.\d{6}\d*[1-9]"
_FLOATS = ("float", "double")
_FRACTIONS = ("decimal", "float", "double")
_OFFSET = r":\d\d.*(Z|UTC|[+-]\d{1,2}(:?\d\d)*)\s*$"


def changed(
    value: SparkColumn, have: DataType, cast: SparkColumn, want: DataType, *, nearest: bool = False
) -> SparkColumn:
    """True where `cast`, which is `value` tried as `want`, is another value or none at all. With `nearest`, a float or
    double may be the nearest to a fraction, which is what they are for."""
    from pyspark.sql import functions as F

    none = value.isNotNull() & cast.isNull()
    if want.typeName() == "string":
        # Spark takes any bytes for text; who reads it then, does not.
        return none | ~F.is_valid_utf8(cast) if have.typeName() == "binary" else none
    if want.typeName() in _FLOATS and (have.typeName() == "string" or (nearest and have.typeName() in _FRACTIONS)):
        too_big = (F.abs(cast) == float("inf")) & ~value.cast("string").rlike("(?i)inf")
        return none | F.coalesce(too_big, F.lit(False))
    if have.typeName() == "string":
        return none | F.coalesce(_text_changed(value, cast, want), F.lit(False))
    return none | (value.isNotNull() & ~cast.try_cast(have).eqNullSafe(value))


def _text_changed(text: SparkColumn, cast: SparkColumn, want: DataType) -> SparkColumn:
    """Compared as text it would always differ: 1.5 comes back as 1.50."""
    from pyspark.sql import functions as F

    kind = want.typeName()
    if kind == "decimal":
        return rounds(text, getattr(want, "scale", 0))
    if kind == "date":
        moment = text.try_cast("timestamp_ntz")
        return ~text.rlike(_DAY) | (moment != cast.cast("timestamp_ntz"))
    if kind == "timestamp":
        return ~text.rlike(_DAY) | text.rlike(_BEYOND_MICROS)
    if kind == "timestamp_ntz":
        return ~text.rlike(_DAY) | text.rlike(_BEYOND_MICROS) | text.rlike(_OFFSET)
    return F.lit(False)


def rounds(text: SparkColumn, scale: int) -> SparkColumn:
    """Whether a number written as text has more places behind its point than that."""
    from pyspark.sql import functions as F

    number = F.trim(text)
    mantissa = F.regexp_extract(number, r"^[+-]?([\d.]*)", 1)
    exponent = F.coalesce(F.regexp_extract(number, r"[eE]([+-]?\d+)$", 1).try_cast("int"), F.lit(0))
    digits = F.regexp_replace(mantissa, r"\.", "")
    written = F.length(F.regexp_extract(mantissa, r"\.(\d*)$", 1))
    zeros = F.length(F.regexp_extract(digits, "(0*)$", 1))
    return digits.rlike("[1-9]") & (written - zeros - exponent > scale)
