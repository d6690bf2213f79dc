"""No windows: the whole table on each run, for tables that are small or have nothing to follow."""

from __future__ import annotations

from floodmark.changes.columns import At
from floodmark.errors import ConfigError
from floodmark.model.position import Position
from floodmark.model.spec import FullSpec
from floodmark.model.table import Cursor, TableInfo


class FullChange:
    def __init__(self, spec: FullSpec, at: At) -> None:
        self._spec = spec
        self._at = at

    def cursor(self, table: TableInfo) -> None:  # noqa: ARG002 - the port's shape
        return None

    def position(self, value: object, cursor: Cursor) -> Position:  # noqa: ARG002 - the port's shape
        raise ConfigError(
            "this pipeline reads the whole table each time, so it has no position to set",
            declared_at=self._at("change"),
        )
