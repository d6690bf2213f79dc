"""Spark's types as Postgres keeps them, and the batch as `COPY` takes it: every value as text that Postgres reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from floodmark.model.names import spark_name
from floodmark.targets.database.types import Types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

TYPES = Types(
    database="Postgres",
    decimal="numeric",
    json="jsonb",
    plain={
        "byte": "smallint",
        "short": "smallint",
        "integer": "integer",
        "long": "bigint",
        "float": "real",
        "double": "double precision",
        "boolean": "boolean",
        "string": "text",
        "varchar": "text",
        "char": "text",
        "binary": "bytea",
        "date": "date",
        "timestamp": "timestamp with time zone",
        "timestamp_ntz": "timestamp without time zone",
    },
)
MOST_DIGITS = 38
"""Of a decimal in Spark."""


def spark_type(name: str) -> DataType | None:
    """What a column of this type holds. None for a type that only Postgres has: it reads the text itself, and refuses
    what does not fit."""
    from pyspark.sql import types as T

    known: dict[str, DataType] = {
        "smallint": T.ShortType(),
        "integer": T.IntegerType(),
        "bigint": T.LongType(),
        "real": T.FloatType(),
        "double precision": T.DoubleType(),
        "boolean": T.BooleanType(),
        "text": T.StringType(),
        "jsonb": T.StringType(),
        "bytea": T.BinaryType(),
        "date": T.DateType(),
        "timestamp with time zone": T.TimestampType(),
        "timestamp without time zone": T.TimestampNTZType(),
    }
    if (match := re.fullmatch(r"numeric\((\d+),(\d+)\)", name)) and int(match[1]) <= MOST_DIGITS:
        return T.DecimalType(int(match[1]), int(match[2]))
    return known.get(name)


def as_text(batch: DataFrame, columns: Sequence[str]) -> DataFrame:
    """In their order, under names that PySpark does not stumble over. The session's zone is UTC, on both sides."""
    from pyspark.sql import functions as F

    def text(name: str) -> str:
        column = spark_name(name)
        if batch.schema[name].dataType.typeName() == "binary":
            return f"concat('\\\\x', hex({column}))"
        return f"cast({column} AS string)"

    return batch.select(*(F.expr(text(name)).alias(f"c{place}") for place, name in enumerate(columns)))
