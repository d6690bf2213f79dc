"""What MySQL says about a table's columns, about a query's, and about the tables that there are."""

from __future__ import annotations

from typing import Any

from floodmark.errors import ConfigError, Place
from floodmark.model.table import Column
from floodmark.sources.mysql.types import type_of

TABLES = """
SELECT table_schema, table_name FROM information_schema.tables
WHERE table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') {only} ORDER BY 1, 2
"""
BASE_TABLES = TABLES.format(only="AND table_type = 'BASE TABLE'")
ALL_TABLES = TABLES.format(only="")

UNKNOWN = {1044, 1049, 1051, 1146}
"""No such table, or no such database."""

_UNSIGNED, _ENUM, _SET, _NOT_NULL = 32, 256, 2048, 1
_BINARY = 63
"""The character set of what is no text."""
_NUMBERS = {1: "tinyint", 2: "smallint", 3: "int", 8: "bigint", 9: "mediumint", 4: "float", 5: "double"}
_TIMES = {7: "timestamp", 12: "datetime", 17: "timestamp", 18: "datetime"}
_OTHERS = {10: "date", 14: "date", 11: "time", 19: "time", 13: "year", 245: "json", 255: "geometry"}
_TEXTS = {15, 249, 250, 251, 252, 253, 254}


def declared_type(field: Any) -> str:
    """The type of a result's column, in the words of SHOW COLUMNS."""
    code, flags = field.type_code, field.flags
    if code in _NUMBERS:
        return _NUMBERS[code] + (" unsigned" if flags & _UNSIGNED and code not in (4, 5) else "")
    if code in (0, 246):
        # The length counts the sign and the point.
        digits = field.length - (0 if flags & _UNSIGNED else 1) - (1 if field.scale else 0)
        return f"decimal({digits},{field.scale})"
    if code in _TIMES:
        return f"{_TIMES[code]}({field.scale})" if 0 < field.scale <= 6 else _TIMES[code]
    if code == 16:
        return f"bit({field.length})"
    if code in _TEXTS:
        if flags & (_ENUM | _SET):
            return "enum" if flags & _ENUM else "set"
        return "longblob" if field.charsetnr == _BINARY else "longtext"
    return "null" if code == 6 else _OTHERS.get(code, f"type {code}")


def column(name: str, declared: str, nullable: bool, table: str, declared_at: Place | None) -> Column:
    found = type_of(declared)
    if found is None:
        raise ConfigError(
            f'column "{name}" of {table} is {declared}, which can\'t be carried',
            table=table,
            column=name,
            declared_at=declared_at,
            hint='leave it out or turn it into text: source: {query: "select id, … from …"}, or a view',
        )
    return Column(name, declared, found.kind, nullable, found.zoned, found.precision)


def result_column(field: Any, declared_at: Place | None) -> Column:
    return column(field.name, declared_type(field), not field.flags & _NOT_NULL, "the query", declared_at)
