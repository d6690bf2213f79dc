"""SQL text over a cursor: bounds, extents, cuts. Shared by the databases, each of which brings its own literals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import pairwise
from zoneinfo import ZoneInfo

from floodmark.connections.names import quote
from floodmark.errors import ConfigError, Place, SourceError
from floodmark.model.position import Position, Scalar
from floodmark.model.table import Column, Cursor


def unknown_table(name: str, where: str, names: Sequence[str], declared_at: Place | None) -> ConfigError:
    """Says what exists instead; a table may be misspelt with or without its schema."""
    # By the table's own name: two that share nothing but a long schema would pass for alike.
    short = {known: known.rpartition(".")[2] for known in names}
    near = get_close_matches(name.rpartition(".")[2], short.values(), n=1)
    close = get_close_matches(name, [known for known in names if short[known] in near], n=1, cutoff=0)
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
    if moment.tzinfo is not None:
        return moment.astimezone(UTC)
    found = moment.replace(tzinfo=ZoneInfo(cursor.timezone) if cursor.timezone else UTC).astimezone(UTC)
    if local_time(found, cursor) != moment:
        # It has no place among the times of this zone, and a window that began there would lose its neighbours.
        raise SourceError(
            f'"{cursor.leading.name}" holds {moment}, a time that {cursor.timezone} does not have: clocks were set '
            "forward over it",
            column=cursor.leading.name,
            value=moment,
            hint="the column is in another zone than `timezone:` says; in UTC every time is there",
        )
    return found


Literal = Callable[[Scalar, Column, Cursor], str]


def limit_offset(offset: int) -> str:
    return f"LIMIT 1 OFFSET {offset}" if offset else "LIMIT 1"


def fetch_first(offset: int) -> str:
    """The standard's way."""
    return f"OFFSET {offset} ROWS FETCH FIRST 1 ROWS ONLY"


@dataclass(frozen=True)
class Dialect:
    """What databases write differently."""

    quote: Callable[[str], str] = quote
    one_row: Callable[[int], str] = limit_offset
    """The row behind so many others."""
    row_values: bool = True
    """Compares `(a, b) > (x, y)`, and finds the rows by an index on both."""
    random: str = "random()"
    """A number from 0 to 1, another one for each row."""


@dataclass(frozen=True)
class CursorSql:
    """Statements on one relation's cursor. A composite cursor orders as one: by row values, or spelt out."""

    relation: str
    """A quoted table or a query in parentheses, with a name behind it."""
    cursor: Cursor
    literal: Literal
    dialect: Dialect = Dialect()

    @property
    def columns(self) -> str:
        return ", ".join(self.names)

    @property
    def _selected(self) -> str:
        """Under the columns' own names, also where another one stands in."""
        quoted = [self.dialect.quote(name) for name in self.cursor.names]
        return ", ".join(e if e == q else f"{e} AS {q}" for e, q in zip(self.names, quoted, strict=True))

    @property
    def names(self) -> list[str]:
        names = [self.dialect.quote(name) for name in self.cursor.names]
        if self.cursor.fallback is not None:
            names[0] = f"coalesce({names[0]}, {self.dialect.quote(self.cursor.fallback.name)})"
        return names

    @property
    def nulls(self) -> str:
        """The rows that lie in no window."""
        return "(" + " OR ".join(f"{name} IS NULL" for name in self.names) + ")"

    def bounds(self, after: Position | None, until: Position | None) -> str:
        """NULLs lie in no window: they are counted and dealt with by themselves."""
        parts = [f"{name} IS NOT NULL" for name in self.names]
        if after is not None:
            parts.append(self._compare(">" if after.beyond else ">=", after))
        if until is not None:
            parts.append(self._compare("<=" if until.beyond else "<", until))
        return " AND ".join(parts)

    def _compare(self, operator: str, position: Position) -> str:
        columns = self.cursor.columns[: len(position.values)]
        names = self.names[: len(columns)]
        values = [self.literal(v, c, self.cursor) for v, c in zip(position.values, columns, strict=True)]
        if len(columns) == 1:
            return f"{names[0]} {operator} {values[0]}"
        if self.dialect.row_values:
            return f"({', '.join(names)}) {operator} ({', '.join(values)})"
        alternatives = []
        for place, name in enumerate(names):
            equal = [f"{names[i]} = {values[i]}" for i in range(place)]
            sign = operator if place == len(names) - 1 else operator[0]
            alternatives.append(" AND ".join([*equal, f"{name} {sign} {values[place]}"]))
        # The leading column once more by itself: that is the range which an index can be entered with.
        return f"{names[0]} {operator[0]}= {values[0]} AND ({' OR '.join(f'({a})' for a in alternatives)})"

    def count(self, after: Position | None, until: Position | None) -> str:
        return f"SELECT count(*) AS floodmark_n FROM {self.relation} WHERE {self.bounds(after, until)}"

    def highest(self, after: Position | None, until: Position | None) -> str:
        order = ", ".join(f"{name} DESC" for name in self.names)
        where, first = self.bounds(after, until), self.dialect.one_row(0)
        return f"SELECT {self._selected} FROM {self.relation} WHERE {where} ORDER BY {order} {first}"

    def nth(self, after: Position | None, until: Position | None, offset: int) -> str:
        where, nth = self.bounds(after, until), self.dialect.one_row(offset)
        return f"SELECT {self._selected} FROM {self.relation} WHERE {where} ORDER BY {self.columns} {nth}"

    def sample(self, where: str, share: float) -> str:
        """About that share of the rows, in order: from a few of them balanced partitions follow."""
        chosen = "" if share >= 1 else f" AND {self.dialect.random} < {share:.9f}"
        return f"SELECT {self._selected} FROM {self.relation} WHERE {where}{chosen} ORDER BY {self.columns}"

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
    # Asked of the database: 'a' and 'A' may be one value there.
    if fetch(sql.nth(after, Position.before(*values), 0)) is not None:
        return Position.before(*values)
    following = fetch(sql.nth(Position.after(*values), until, 0))
    return None if following is None else Position.before(*following)
