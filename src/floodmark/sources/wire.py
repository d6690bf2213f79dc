"""How rows travel over JDBC: under plain names of our own, since not every name survives the journey, and in types that
the driver can't misread. Spark makes the real types of them, and refuses by name what none of these can hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from floodmark.errors import ConfigError, Place
from floodmark.model.names import twins
from floodmark.model.table import TableInfo

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

WIDEST = 38
"""Digits of Spark's decimal."""
SHOWN = 80
"""Characters of a value in a message: enough to find it, and one line."""

Refuse = Callable[["SparkColumn | str", str], "SparkColumn"]
"""A value and why it can't arrive, to an expression that fails the load with both."""


@dataclass(frozen=True)
class Wire:
    """One column: what the database is asked for and the type that Spark reads it as, then what Spark makes of that.
    A second part may hold what has to be refused."""

    name: str
    parts: tuple[tuple[str, str], ...]
    make: Callable[[Sequence[SparkColumn], Refuse], SparkColumn]


@dataclass(frozen=True)
class Wires:
    """The columns of one table. A guard belongs to its own column: leave that out in a transform, and Spark neither
    reads nor checks it."""

    table: TableInfo
    wires: tuple[Wire, ...]

    @property
    def _prefix(self) -> str:
        prefix = "floodmark_"
        while any(name.lower().startswith(prefix) for name in self.table.names):
            prefix += "_"
        return prefix

    @property
    def _parts(self) -> list[tuple[str, str, str]]:
        """Name on the wire, SQL, type."""
        parts = [part for wire in self.wires for part in wire.parts]
        return [(f"{self._prefix}{place}", sql, kind) for place, (sql, kind) in enumerate(parts)]

    @property
    def select(self) -> str:
        return ", ".join(f"{sql} AS {name}" for name, sql, _ in self._parts)

    @property
    def schema(self) -> str:
        """Spark's option `customSchema`."""
        return ", ".join(f"{name} {kind}" for name, _, kind in self._parts)

    def typed(self, rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        names = iter(name for name, _, _ in self._parts)
        taken = [(wire, [F.col(next(names)) for _ in wire.parts]) for wire in self.wires]
        keys = [
            (wire.name, columns[0])
            for wire, columns in taken
            if wire.name in self.table.primary_key and wire.parts[0][1] in ("string", "smallint", "int", "bigint")
        ]
        return rows.select(
            *(
                wire.make(columns, _refusing(self.table.name, wire.name, keys)).alias(wire.name)
                for wire, columns in taken
            )
        )


def _refusing(table: str, column: str, keys: Sequence[tuple[str, SparkColumn]]) -> Refuse:
    """Says the row's key too: whoever mends it has to find it."""
    from pyspark.sql import functions as F

    def refuse(value: SparkColumn | str, why: str) -> SparkColumn:
        shown = F.lit(value) if isinstance(value, str) else F.substring(F.regexp_replace(value, r"\s+", " "), 1, SHOWN)
        where = [part for name, key in keys for part in (F.lit(f"{name} = "), key.cast("string"), F.lit(", "))][:-1]
        row = [F.lit(" (the row with "), *where, F.lit(")")] if where else []
        said = [F.lit(f'floodmark: column "{column}" of {table} holds '), shown, F.lit(f", {why}"), *row]
        out = f"; leave the column out in a `transform`, or read {table} through a view that casts it to text"
        return F.raise_error(F.concat(*said, F.lit(out)))

    return refuse


def refuse_twins(table: TableInfo, declared_at: Place | None) -> TableInfo:
    """Spark and Delta find columns without regard to case, so of two that differ in nothing else one would be lost."""
    pair = twins(table.names)
    if pair is None:
        return table
    raise ConfigError(
        f'columns "{pair[0]}" and "{pair[1]}" of {table.name} differ only by case, which Spark can\'t tell apart',
        table=table.name,
        column=pair[1],
        declared_at=declared_at,
        hint="read the table through a view that gives one of them another name",
    )
