"""Tables as aligned plain text. On a terminal too narrow for one, each row becomes a small block instead: a number or a
mark that was cut off is worth nothing."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

GAP = "  "


@dataclass(frozen=True)
class Column:
    title: str
    right: bool = False


@dataclass(frozen=True)
class Row:
    """`notes` belong to the row but to no column; a single one goes behind it where there is room."""

    cells: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    columns: tuple[Column, ...]
    rows: Sequence[Row] = field(default_factory=tuple)


def lay_out(table: Table, width: int | None) -> Iterator[str]:
    """`width` None is a log or a pipe: as wide as it needs to be."""
    widths = [
        max(cell_width(text) for text in (column.title, *(row.cells[i] for row in table.rows)))
        for i, column in enumerate(table.columns)
    ]
    if width is not None and sum(widths) + len(GAP) * (len(widths) - 1) > width:
        yield from _blocks(table)
        return
    yield _aligned(table, [column.title for column in table.columns], widths).rstrip()
    for row in table.rows:
        line = _aligned(table, row.cells, widths)
        if len(row.notes) == 1 and (width is None or cell_width(line) + len(GAP + row.notes[0]) <= width):
            yield line + GAP + row.notes[0]
            continue
        yield line.rstrip()
        yield from (GAP + note for note in row.notes)


def cell_width(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def pad(text: str, width: int, *, right: bool = False) -> str:
    space = " " * (width - cell_width(text))
    return space + text if right else text + space


def _aligned(table: Table, cells: Sequence[str], widths: Sequence[int]) -> str:
    return GAP.join(
        pad(text, width, right=column.right) for text, width, column in zip(cells, widths, table.columns, strict=True)
    )


def _blocks(table: Table) -> Iterator[str]:
    titles = [column.title for column in table.columns[1:]]
    widest = max(map(cell_width, titles), default=0)
    for row in table.rows:
        yield row.cells[0]
        yield from (GAP + pad(t, widest) + GAP + cell for t, cell in zip(titles, row.cells[1:], strict=True))
        yield from (GAP + note for note in row.notes)
