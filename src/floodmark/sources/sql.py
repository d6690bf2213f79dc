"""SQL text over a cursor: bounds, extents, cuts. Shared by the databases, each of which brings its own literals."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import pairwise
from zoneinfo import ZoneInfo

from floodmark.errors import ConfigError, Place
from floodmark.model.position import Position, Scalar
from floodmark.model.table import Column, Cursor

_PART = r'(?:"(?:[^"]|"")+"|[^".]+)'


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def split_name(name: str, declared_at: Place | None = None) -> list[str]:
    """`schema.table`, capitals and all as they are. A part that holds a dot or a double quote itself is written as in
    SQL: in double quotes, with those inside it doubled."""
    if re.fullmatch(rf"{_PART}(?:\.{_PART})*", name) is None:
        raise ConfigError(
            f"{name!r} is not the name of a table",
            table=name,
            declared_at=declared_at,
            hint="a part with a dot or a double quote in it goes in double quotes, with those inside it doubled: "
            """'public."odd.name"', 'public."an ""odd"" name"'""",
        )
    return [p[1:-1].replace('""', '"') if p.startswith('"') else p for p in re.findall(_PART, name)]


def unknown_table(name: str, where: str, names: Sequence[str], declared_at: Place | None) -> ConfigError:
    """Says what exists instead; a table may be misspelt with or without its schema."""
    by_short = {known.rpartition(".")[2]: known for known in names}
    short = get_close_matches(name.rpartition(".")[2], by_short, n=1)
    close = get_close_matches(name, names, n=1) or [by_short[found] for found in short]
    guess = f"did you mean {close[0]}? " if close else ""
    shown = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    return ConfigError(
        f"there is no table {name} in {where}",
        table=name,
        declared_at=declared_at,
        hint=f"{guess}Tables there: {shown or 'none that can be seen'}",
    )


def local_time(moment: datetime, cursor: Cursor) -> datetime:
    """The value as a zone-less column holds it."""
    zone = ZoneInfo(cursor.timezone) if cursor.timezone else UTC
    return moment.astimezone(zone).replace(tzinfo=None)


def utc_time(moment: datetime, cursor: Cursor) -> datetime:
    """The inverse: what a zone-less value means."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=ZoneInfo(cursor.timezone) if cursor.timezone else UTC)
    return moment.astimezone(UTC)


Literal = Callable[[Scalar, Column, Cursor], str]


@dataclass(frozen=True)
class CursorSql:
    """Statements on one table's cursor. Comparisons are row values, so a composite cursor orders as one."""

    table: str
    """Quoted."""
    cursor: Cursor
    literal: Literal

    @property
    def columns(self) -> str:
        return ", ".join(quote(name) for name in self.cursor.names)

    def bounds(self, after: Position | None, until: Position | None) -> str:
        """NULLs lie in no window: they are counted and dealt with by themselves."""
        parts = [f"{quote(name)} IS NOT NULL" for name in self.cursor.names]
        if after is not None:
            parts.append(self._compare(">" if after.beyond else ">=", after))
        if until is not None:
            parts.append(self._compare("<=" if until.beyond else "<", until))
        return " AND ".join(parts)

    def _compare(self, operator: str, position: Position) -> str:
        columns = self.cursor.columns[: len(position.values)]
        names = ", ".join(quote(c.name) for c in columns)
        values = ", ".join(
            self.literal(value, column, self.cursor) for value, column in zip(position.values, columns, strict=True)
        )
        return f"({names}) {operator} ({values})" if len(columns) > 1 else f"{names} {operator} {values}"

    def count(self, after: Position | None, until: Position | None) -> str:
        return f"SELECT count(*) FROM {self.table} WHERE {self.bounds(after, until)}"

    def highest(self, after: Position | None, until: Position | None) -> str:
        order = ", ".join(f"{quote(name)} DESC" for name in self.cursor.names)
        return f"SELECT {self.columns} FROM {self.table} WHERE {self.bounds(after, until)} ORDER BY {order} LIMIT 1"

    def nth(self, after: Position | None, until: Position | None, offset: int) -> str:
        where = self.bounds(after, until)
        return f"SELECT {self.columns} FROM {self.table} WHERE {where} ORDER BY {self.columns} LIMIT 1 OFFSET {offset}"

    def splits(self, after: Position | None, until: Position | None, step: int) -> str:
        """Every `step`-th value, from which balanced partitions follow."""
        numbered = (
            f"SELECT {self.columns}, row_number() OVER (ORDER BY {self.columns}) AS floodmark_n "
            f"FROM {self.table} WHERE {self.bounds(after, until)}"
        )
        return (
            f"SELECT DISTINCT {self.columns} FROM ({numbered}) q "
            f"WHERE floodmark_n > 1 AND floodmark_n % {step} = 1 ORDER BY {self.columns}"
        )

    def partitions(self, cuts: Sequence[Position]) -> list[str]:
        """Predicates that hold each row of the window exactly once."""
        edges: list[Position | None] = [None, *cuts, None]
        return [self.bounds(low, high) for low, high in pairwise(edges)]


Fetch = Callable[[str], "tuple[Scalar, ...] | None"]
"""Runs a statement and reads its first row as cursor values."""


def next_cut(sql: CursorSql, fetch: Fetch, after: Position | None, until: Position, rows: int) -> Position | None:
    """Cut where about `rows` rows lie before, at a distinct value. More ties than that are kept together: the cut then
    moves on to the next value, or there is none."""
    values = fetch(sql.nth(after, until, rows))
    if values is None:
        return None
    first = fetch(sql.nth(after, until, 0))
    if first != values:
        return Position.before(*values)
    following = fetch(sql.nth(Position.after(*values), until, 0))
    return None if following is None else Position.before(*following)
