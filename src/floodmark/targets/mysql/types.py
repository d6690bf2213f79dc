"""Spark's types as MySQL keeps them, and the batch as it travels: every value as text, told apart from NULL by a letter
before it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from floodmark.model.names import spark_name
from floodmark.targets.database.types import Types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField

TYPES = Types(
    database="MySQL",
    decimal="decimal",
    json="json",
    plain={
        "byte": "tinyint",
        "short": "smallint",
        "integer": "int",
        "long": "bigint",
        "float": "float",
        "double": "double",
        "boolean": "tinyint(1)",
        "string": "longtext",
        "varchar": "longtext",
        "char": "longtext",
        "binary": "longblob",
        "date": "date",
        "timestamp": "datetime(6)",
        "timestamp_ntz": "datetime(6)",
    },
)
KEYS = {"longtext": "varchar(255)", "longblob": "varbinary(255)"}
"""What an index can hold."""
WIDTH = re.compile(r"^(tinyint|smallint|int|bigint)\(\d+\)")
"""MariaDB shows how wide a number would be printed."""
MARK = "v"


def spark_type(declared: str) -> DataType | None:
    """None for a moment, too: with or without a zone, it is kept alike."""
    from pyspark.sql import types as T

    known: dict[str, DataType] = {
        "tinyint(1)": T.BooleanType(),
        "tinyint": T.ByteType(),
        "smallint": T.ShortType(),
        "int": T.IntegerType(),
        "bigint": T.LongType(),
        "float": T.FloatType(),
        "double": T.DoubleType(),
        "longtext": T.StringType(),
        "json": T.StringType(),
        "longblob": T.BinaryType(),
        "date": T.DateType(),
    }
    if match := re.fullmatch(r"decimal\((\d+),(\d+)\)", declared):
        return T.DecimalType(int(match[1]), int(match[2])) if int(match[1]) <= 38 else None
    return known.get(declared) or known.get(WIDTH.sub(r"\1", declared))


def as_text(batch: DataFrame) -> DataFrame:
    """In the batch's order. The session's zone is UTC, on both sides."""
    from pyspark.sql import functions as F

    return batch.select(*(F.expr(_text(field)).alias(f"c{i}") for i, field in enumerate(batch.schema.fields)))


def _text(field: StructField) -> str:
    column, kind = spark_name(field.name), field.dataType.typeName()
    value = {"binary": f"hex({column})", "boolean": f"cast(cast({column} AS int) AS string)"}.get(
        kind, f"cast({column} AS string)"
    )
    return f"concat('{MARK}', {value})"


def from_text(field: StructField, column: str) -> str:
    """The way back, in MySQL's words; what does not fit its column is an error there."""
    return f"unhex({column})" if field.dataType.typeName() == "binary" else column
