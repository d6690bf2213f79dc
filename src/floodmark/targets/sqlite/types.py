"""Spark's types as SQLite keeps them. The declared names say more than SQLite itself minds: it looks only for INT,
TEXT, BLOB and REAL in them, and keeps everything else as it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from floodmark.model.names import spark_name
from floodmark.targets.database.types import Types

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField

TYPES = Types(
    database="SQLite",
    decimal="DECIMAL_TEXT",  # a number would be rounded to a double
    json="JSON_TEXT",
    plain={
        "byte": "INTEGER",
        "short": "INTEGER",
        "integer": "INTEGER",
        "long": "INTEGER",
        "float": "REAL",
        "double": "REAL",
        "boolean": "BOOLEAN",
        "string": "TEXT",
        "varchar": "TEXT",
        "char": "TEXT",
        "binary": "BLOB",
        "date": "DATE",
        "timestamp": "DATETIME",
        "timestamp_ntz": "DATETIME",
    },
)
MOMENT = "yyyy-MM-dd HH:mm:ss.SSSSSS"
"""In UTC: as text it sorts like the moments themselves."""


def spark_type(declared: str) -> DataType | None:
    from pyspark.sql import types as T

    known: dict[str, DataType] = {
        "INTEGER": T.LongType(),
        "REAL": T.DoubleType(),
        "TEXT": T.StringType(),
        "JSON_TEXT": T.StringType(),
        "BLOB": T.BinaryType(),
    }
    return known.get(declared.upper())


def as_kept(batch: DataFrame) -> DataFrame:
    """Values in the types that SQLite knows, in the batch's order."""
    return batch.select(*(_kept(field).alias(f"c{place}") for place, field in enumerate(batch.schema.fields)))


def _kept(field: StructField) -> Column:
    from pyspark.sql import functions as F

    value, kind = F.col(spark_name(field.name)), field.dataType.typeName()
    if kind in ("timestamp", "timestamp_ntz"):
        return F.date_format(value, MOMENT)
    if kind in ("date", "decimal"):
        return value.cast("string")
    if kind == "boolean":
        return value.cast("int")
    if kind in ("float", "double"):
        said = f'floodmark: column "{field.name}" holds NaN, which SQLite would keep as NULL'
        return F.when(F.isnan(value), F.raise_error(F.lit(said))).otherwise(value)
    return value
