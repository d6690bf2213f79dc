"""Windows on an id or version that only grows: integers or text, in the database's order."""

from __future__ import annotations

from floodmark.changes.columns import At, check_ordered, find_columns, find_fallback, parse_position
from floodmark.errors import ConfigError
from floodmark.model.position import Position
from floodmark.model.spec import SequenceSpec
from floodmark.model.table import Cursor, TableInfo


class SequenceChange:
    def __init__(self, spec: SequenceSpec, at: At) -> None:
        self._spec = spec
        self._at = at

    def cursor(self, table: TableInfo) -> Cursor:
        place = self._at("change.column") if self._spec.column else self._at("change.columns")
        columns = find_columns(table, self._spec.cursor_columns, place)
        if columns[0].kind == "timestamp":
            raise ConfigError(
                f'column "{columns[0].name}" of {table.name} is a timestamp',
                table=table.name,
                column=columns[0].name,
                declared_at=place,
                hint="use `by: timestamp`: it knows when a moment is over, which a sequence does not have",
            )
        check_ordered(table, columns, place)
        if self._spec.lookback is not None and columns[0].kind != "integer":
            raise ConfigError(
                f'column "{columns[0].name}" of {table.name} is {columns[0].declared}: a lookback counts back from a '
                "number",
                table=table.name,
                column=columns[0].name,
                declared_at=self._at("change.lookback"),
            )
        return Cursor(columns, fallback=find_fallback(table, self._spec, columns[0], self._at))

    def position(self, value: object, cursor: Cursor) -> Position:
        return parse_position(value, cursor, self._at("change.start"))
