"""One read by several readers: how many, where to cut, and a predicate for each. Cuts come from a sample, so they only
balance the work; that each row lies in exactly one partition does not rest on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from floodmark.model.position import Position, Scalar
from floodmark.model.table import Cursor, TableInfo
from floodmark.sources.sql import CursorSql

ROWS_PER_PARTITION = 100_000
MOST_PARTITIONS = 8
"""Connections that one read may open when the user has not said."""
SAMPLE = 2_000
"""Rows whose keys are looked at: a partition is then rarely a tenth off its share."""
FEWEST = 16
"""Sampled rows per partition below which the sample says too little."""


@dataclass(frozen=True)
class Split:
    """`columns` are selected beside the data under names of their own, since a selected value may have another form
    than the one that the database compares; `predicates` are over them."""

    columns: tuple[str, ...] = ()
    predicates: tuple[str, ...] = ()


def readers(declared: int | None, rows: int | None) -> int:
    if rows is None:
        return 1
    wanted = declared or min(MOST_PARTITIONS, ceil(rows / ROWS_PER_PARTITION))
    return 1 if rows < wanted else max(1, wanted)


def share(rows: int) -> float:
    return min(1.0, SAMPLE / rows) if rows else 1.0


def key_of(table: TableInfo) -> Cursor | None:
    """The primary key, where its values have an order that can be written down. A row keeps it, whatever changes."""
    columns = tuple(column for name in table.primary_key if (column := table.column(name)) is not None)
    if not columns or any(c.nullable or c.kind not in ("integer", "text", "timestamp") for c in columns):
        return None
    return Cursor(columns)


def cuts_from(sample: Sequence[tuple[Scalar, ...]], wanted: int) -> list[Position]:
    """From values in the database's order. Equal cuts would only make an empty partition."""
    step = len(sample) / wanted
    picked = [sample[int(step * i)] for i in range(1, wanted)] if sample else []
    return [Position.before(*values) for values in dict.fromkeys(picked)]


def split_by(sql: CursorSql, cuts: Sequence[Position]) -> Split:
    if not cuts:
        return Split()
    renamed = tuple(replace(c, name=f"floodmark_k{i}") for i, c in enumerate(sql.cursor.columns))
    quote = sql.dialect.quote
    columns = tuple(f"{name} AS {quote(hidden.name)}" for name, hidden in zip(sql.names, renamed, strict=True))
    hidden = replace(sql, cursor=Cursor(renamed, sql.cursor.timezone))
    return Split(columns, tuple(hidden.partitions(cuts)))
