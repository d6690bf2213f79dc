"""Finds the declared cursor columns in the table, and reads a user's value as a position on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from zoneinfo import ZoneInfo

from floodmark.errors import ConfigError, Place
from floodmark.model.position import Position, Scalar
from floodmark.model.spec import CoalesceSpec, CursorOptions
from floodmark.model.table import Column, Cursor, TableInfo

At = Callable[[str], Place | None]
"""Where an option was declared, by its path below the pipeline."""


def find_columns(table: TableInfo, names: Sequence[str], declared_at: Place | None) -> tuple[Column, ...]:
    return tuple(find_column(table, name, declared_at) for name in names)


def find_column(table: TableInfo, name: str, declared_at: Place | None) -> Column:
    column = table.column(name)
    if column is not None:
        return column
    same = [known for known in table.names if known.casefold() == name.casefold()]
    close = same or get_close_matches(name, table.names, n=1)
    guess = f"did you mean {close[0]}? " if close else ""
    raise ConfigError(
        f'column "{name}" is not in {table.name}',
        table=table.name,
        column=name,
        declared_at=declared_at,
        hint=f"{guess}Columns of {table.name}: {', '.join(table.names)}",
    )


def find_fallback(table: TableInfo, spec: CursorOptions, leading: Column, at: At) -> Column | None:
    """The column that stands in for NULLs; its values must mean the same."""
    if not isinstance(spec.nulls, CoalesceSpec):
        return None
    found = find_column(table, spec.nulls.coalesce, at("change.nulls"))
    if (found.kind, found.zoned) != (leading.kind, leading.zoned):
        raise ConfigError(
            f'column "{found.name}" of {table.name} is {found.declared}, which can\'t stand in for "{leading.name}", '
            f"a {leading.declared}",
            table=table.name,
            column=found.name,
            declared_at=at("change.nulls"),
        )
    return found


def check_ordered(table: TableInfo, columns: Sequence[Column], declared_at: Place | None) -> None:
    for column in columns:
        if column.kind not in ("timestamp", "integer", "text"):
            raise ConfigError(
                f'column "{column.name}" of {table.name} is {column.declared}, which can\'t be part of a cursor',
                table=table.name,
                column=column.name,
                declared_at=declared_at,
                hint="a cursor is made of timestamps, integers or text",
            )


def parse_position(value: object, cursor: Cursor, declared_at: Place | None) -> Position:
    """Comma-separated for a composite cursor; fewer values than columns cut before all rows that share them."""
    parts = value if isinstance(value, list | tuple) else value.split(",") if isinstance(value, str) else [value]
    if len(parts) > len(cursor.columns):
        raise ConfigError(
            f"{value!r} has {len(parts)} values, the cursor has {len(cursor.columns)}: {', '.join(cursor.names)}",
            declared_at=declared_at,
        )
    pairs = zip(parts, cursor.columns, strict=False)
    return Position.before(*(_parse(part, column, cursor, declared_at) for part, column in pairs))


def _parse(part: object, column: Column, cursor: Cursor, declared_at: Place | None) -> Scalar:
    text = str(part).strip()
    try:
        if column.kind == "integer":
            return int(text.replace("_", ""))
        if column.kind == "timestamp":
            moment = part if isinstance(part, datetime) else datetime.fromisoformat(text)
            zone = ZoneInfo(cursor.timezone) if cursor.timezone else UTC
            return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except ValueError as error:
        wanted = "a whole number" if column.kind == "integer" else "a time such as 2026-11-15 10:00:00"
        raise ConfigError(
            f'{text!r} is not {wanted}, which column "{column.name}" needs', column=column.name, declared_at=declared_at
        ) from error
    return text
