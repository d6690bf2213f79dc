"""Spark's types as DuckDB keeps them, and the batch as its Parquet reader takes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from floodmark.connections.names import quote
from floodmark.model.names import spark_name
from floodmark.targets.database.types import Types

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField, StructType

TYPES = Types(
    database="DuckDB",
    decimal="DECIMAL",
    json="JSON",
    plain={
        "byte": "TINYINT",
        "short": "SMALLINT",
        "integer": "INTEGER",
        "long": "BIGINT",
        "float": "FLOAT",
        "double": "DOUBLE",
        "boolean": "BOOLEAN",
        "string": "VARCHAR",
        "varchar": "VARCHAR",
        "char": "VARCHAR",
        "binary": "BLOB",
        "date": "DATE",
        "timestamp": "TIMESTAMP WITH TIME ZONE",
        "timestamp_ntz": "TIMESTAMP",
    },
)


def spark_type(declared: str) -> DataType | None:
    """None for a type that only DuckDB has: it casts to it, and refuses what does not fit."""
    from pyspark.sql import types as T

    known: dict[str, DataType] = {
        "TINYINT": T.ByteType(),
        "SMALLINT": T.ShortType(),
        "INTEGER": T.IntegerType(),
        "BIGINT": T.LongType(),
        "FLOAT": T.FloatType(),
        "DOUBLE": T.DoubleType(),
        "BOOLEAN": T.BooleanType(),
        "VARCHAR": T.StringType(),
        "JSON": T.StringType(),
        "BLOB": T.BinaryType(),
        "DATE": T.DateType(),
        "TIMESTAMP WITH TIME ZONE": T.TimestampType(),
        "TIMESTAMP": T.TimestampNTZType(),
    }
    if match := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", declared):
        return T.DecimalType(int(match[1]), int(match[2]))
    return known.get(declared)


def as_staged(batch: DataFrame) -> DataFrame:
    """Under names that Parquet can hold. A moment goes as a number: how Spark writes it otherwise is a setting."""
    return batch.select(*(_staged(field).alias(f"c{place}") for place, field in enumerate(batch.schema.fields)))


def _staged(field: StructField) -> Column:
    from pyspark.sql import functions as F

    value = F.col(spark_name(field.name))
    return F.unix_micros(value) if field.dataType.typeName() == "timestamp" else value


def as_read(schema: StructType) -> str:
    """The staged columns as the batch had them."""
    return ", ".join(f"{_read(f.dataType, f'c{place}')} AS {quote(f.name)}" for place, f in enumerate(schema.fields))


def _read(kind: DataType, column: str) -> str:
    return f"make_timestamptz({column})" if kind.typeName() == "timestamp" else column
