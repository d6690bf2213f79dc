"""Types of Spark's that no database keeps as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from floodmark.errors import TargetError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

NESTED = ("array", "map", "struct", "variant")
"""Kept as JSON."""


def no_type(database: str, kind: DataType, column: str, table: str) -> TargetError:
    return TargetError(
        f'column "{column}" is {kind.simpleString()}, which {database} has no type for',
        table=table,
        column=column,
        hint=f"cast it: `columns: {{{column}: {{cast: string}}}}`",
    )
