"""Windows on a modified-at column, alone or leading a composite cursor."""

from __future__ import annotations

from floodmark.changes.columns import At, check_ordered, find_columns, find_fallback, parse_position
from floodmark.errors import ConfigError
from floodmark.model.position import Position
from floodmark.model.spec import TimestampSpec
from floodmark.model.table import Cursor, TableInfo


class TimestampChange:
    def __init__(self, spec: TimestampSpec, at: At) -> None:
        self._spec = spec
        self._at = at

    def cursor(self, table: TableInfo) -> Cursor:
        place = self._at("change.column") if self._spec.column else self._at("change.columns")
        columns = find_columns(table, self._spec.cursor_columns, place)
        leading = columns[0]
        if leading.kind != "timestamp":
            by_sequence = leading.kind in ("integer", "text")
            raise ConfigError(
                f'column "{leading.name}" of {table.name} is {leading.declared}, not a timestamp',
                table=table.name,
                column=leading.name,
                declared_at=place,
                hint="use `by: sequence` for ids, versions and epoch numbers" if by_sequence else None,
            )
        check_ordered(table, columns, place)
        return Cursor(columns, self._spec.timezone, find_fallback(table, self._spec, leading, self._at))

    def position(self, value: object, cursor: Cursor) -> Position:
        return parse_position(value, cursor, self._at("change.start"))
