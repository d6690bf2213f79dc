"""Which columns a Delta table can have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from floodmark.targets.lake_types import refuse_names, refuse_types

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

NO_PLACE = {"void", "interval", "daytimeinterval", "yearmonthinterval", "time"}
"""Spark types that Delta has none for, by `typeName`."""

RESERVED = "_metadata"
"""Spark's own column of every file: a MERGE into a table that has another by this name fails."""


def refuse_columns(schema: StructType, table: str) -> None:
    """Before anything is read or created, and by name: Delta's own words come late, or not at all."""
    refuse_names(schema, table, "Delta", (RESERVED,))
    refuse_types(schema, table, "Delta", NO_PLACE)
