"""Spark's types as a database keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from floodmark.errors import TargetError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

NESTED = ("array", "map", "struct", "variant")
"""Kept as JSON."""


@dataclass(frozen=True)
class Types:
    """What a database calls them."""

    database: str
    plain: Mapping[str, str]
    """By Spark's name."""
    decimal: str
    json: str

    def of(self, kind: DataType, column: str, table: str) -> str:
        name = kind.typeName()
        if name == "decimal":
            return kind.simpleString().replace("decimal", self.decimal)
        if name in NESTED:
            return self.json
        if name not in self.plain:
            raise TargetError(
                f'column "{column}" is {kind.simpleString()}, which {self.database} has no type for',
                table=table,
                column=column,
                hint=f"cast it: `columns: {{{column}: {{cast: string}}}}`",
            )
        return self.plain[name]
