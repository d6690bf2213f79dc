"""Which type holds both: nothing is lost, and nothing is guessed."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from floodmark.targets.widening import common_type


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        (IntegerType(), LongType(), LongType()),
        (ByteType(), ShortType(), ShortType()),
        (FloatType(), DoubleType(), DoubleType()),
        (IntegerType(), DoubleType(), DoubleType()),
        (LongType(), DoubleType(), None),
        (IntegerType(), FloatType(), None),
        (DecimalType(10, 2), DecimalType(12, 2), DecimalType(12, 2)),
        (DecimalType(12, 1), DecimalType(10, 4), DecimalType(15, 4)),
        (DecimalType(38, 0), DecimalType(38, 10), None),
        (IntegerType(), DecimalType(12, 2), DecimalType(12, 2)),
        (LongType(), DecimalType(12, 2), DecimalType(22, 2)),
        (DecimalType(10, 2), DoubleType(), None),
        (DateType(), TimestampNTZType(), TimestampNTZType()),
        (DateType(), TimestampType(), None),
        (StringType(), IntegerType(), None),
        (ArrayType(StringType(), True), ArrayType(StringType(), False), ArrayType(StringType(), True)),
    ],
)
def test_common_type(one: DataType, other: DataType, common: DataType | None) -> None:
    assert common_type(one, other) == common
    reverse = common_type(other, one)
    assert (reverse is None) == (common is None)
    assert reverse is None or common is None or reverse.simpleString() == common.simpleString()
