"""What a source says about a table, and the cursor that a change strategy picks from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CursorKind = Literal["timestamp", "integer", "text"]


@dataclass(frozen=True)
class Column:
    """`kind` is what the column can serve as; `declared` is the database's own word for its type."""

    name: str
    declared: str
    kind: CursorKind | Literal["date", "other"]
    nullable: bool = True
    zoned: bool = False
    precision: int = 6
    """Digits after the second, for timestamps."""
    indexed: bool = False
    """The first column of an index, which then finds its NULLs."""


@dataclass(frozen=True)
class TableInfo:
    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()

    def column(self, name: str) -> Column | None:
        return next((c for c in self.columns if c.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)


@dataclass(frozen=True)
class TableName:
    """As a database lists it. `is_default`: patterns may leave its schema out."""

    schema: str
    table: str
    is_default: bool

    @property
    def written(self) -> str:
        """As `source.table` takes it: a part with a dot in it goes in quotes, where there are parts."""
        if not self.schema:
            return self.table
        return ".".join(f'"{part}"' if "." in part else part for part in (self.schema, self.table))

    @property
    def full(self) -> str:
        return f"{self.schema}.{self.table}" if self.schema else self.table


@dataclass(frozen=True)
class Cursor:
    """The columns whose order the windows follow, most significant first."""

    columns: tuple[Column, ...]
    timezone: str | None = None
    """The zone that zone-less values are in; None reads them as UTC."""
    fallback: Column | None = None
    """Stands in where the leading column is NULL."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    @property
    def leading(self) -> Column:
        return self.columns[0]

    @property
    def nullable(self) -> tuple[Column, ...]:
        """Those that may leave a row without a place in the order."""
        filled = self.fallback is not None and not self.fallback.nullable
        return tuple(c for i, c in enumerate(self.columns) if c.nullable and not (i == 0 and filled))
