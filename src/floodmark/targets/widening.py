"""The smallest type that holds the values of two, without loss; None where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

WHOLE = ("byte", "short", "integer", "long")
DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
"""Of a decimal that takes them, as lake formats count them."""
MOST_DIGITS = 38


def common_type(one: DataType, other: DataType) -> DataType | None:
    if one.simpleString() == other.simpleString():
        return one  # whether an array may hold NULL is no difference here
    first, second = one.typeName(), other.typeName()
    if first in WHOLE and second in WHOLE:
        return one if WHOLE.index(first) >= WHOLE.index(second) else other
    if "decimal" in (first, second):
        return _decimal(one, other)
    kinds = {first, second}
    if kinds <= {"byte", "short", "integer", "float", "double"} and "double" in kinds:
        return one if first == "double" else other
    if kinds == {"date", "timestamp_ntz"}:
        return one if first == "timestamp_ntz" else other
    return None


def _decimal(one: DataType, other: DataType) -> DataType | None:
    from pyspark.sql.types import DecimalType

    shapes = [_shape(kind) for kind in (one, other)]
    if None in shapes:
        return None
    whole = max(shape[0] for shape in shapes if shape)
    scale = max(shape[1] for shape in shapes if shape)
    return DecimalType(whole + scale, scale) if whole + scale <= MOST_DIGITS else None


def _shape(kind: DataType) -> tuple[int, int] | None:
    """Digits before and after the point."""
    from pyspark.sql.types import DecimalType

    if isinstance(kind, DecimalType):
        return kind.precision - kind.scale, kind.scale
    digits = DIGITS.get(kind.typeName())
    return None if digits is None else (digits, 0)
