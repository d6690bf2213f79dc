"""Staged rows into the table, within one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from floodmark.connections.names import quote
from floodmark.errors import TargetError
from floodmark.model.names import DELETED, OP, PROVENANCE
from floodmark.model.outcome import Load, Rows
from floodmark.model.position import Position, Scalar
from floodmark.targets.database.session import VALUE, Dialect, Session, Staged
from floodmark.targets.ranges import check_range, compared, wall_time

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Promotion:
    """Of staged rows with these columns into `table`, whose name is quoted. A cursor whose values the database does not
    order as Spark does is no help: there the later read wins."""

    dialect: Dialect
    table: str
    staged: Staged
    schema: StructType
    load: Load
    unordered: tuple[str, ...]
    has_deletes: bool
    """The staged rows say of each whether it is to go."""

    def run(self, db: Session) -> Rows:
        self._check_count(db)
        deleted = self._cleared(db)
        deleted += self._deleted(db) if self._merges and self.has_deletes else 0
        updated = self._updated(db) if self._merges and not self.load.only_new else 0
        inserted = db.run(self._insert())
        return Rows(self.staged.rows, inserted, updated, deleted)

    @property
    def _merges(self) -> bool:
        return (self.load.mode == "upsert" or self.load.only_new) and not self.load.intent.full

    @property
    def _names(self) -> list[str]:
        return self.schema.names

    def _check_count(self, db: Session) -> None:
        """A database may lose what is staged: an unlogged table is empty after a crash of the server."""
        ((found,),) = db.ask(f"SELECT count(*) FROM {self.staged.table}")
        if found != self.staged.rows:
            lost = f"{self.staged.rows:,} rows were staged and {found:,} of them are there"
            raise TargetError(
                f"{lost}: the database has lost the others", hint="run again: nothing was loaded", transient=True
            )

    def _cleared(self, db: Session) -> int:
        if self.load.intent.full:
            return db.run(f"DELETE FROM {self.table}")
        if not self.load.intent.replaces:
            return 0
        predicate, values = self._range()
        return db.run(f"DELETE FROM {self.table} WHERE {predicate}", values)

    def _insert(self) -> str:
        columns = ", ".join(map(quote, self._names))
        rows = (
            f"INSERT INTO {self.table} ({columns}) SELECT {columns} FROM {self.staged.table} AS s WHERE {self._stays}"
        )
        if self._merges:
            rows += f" AND NOT EXISTS (SELECT 1 FROM {self.table} AS t WHERE {self._same_row()})"
        return rows

    def _updated(self, db: Session) -> int:
        return self._assign(
            db, self.staged.table, self._same_row(), f"({self._wins()}) AND {self._stays}", self.load.keys
        )

    def _assign(self, db: Session, rows: str, same: str, where: str, keys: Sequence[str]) -> int:
        """The values of `rows`, found by the table's own key: the cost follows the rows and not the table."""
        values = {n: "'update'" if n == OP else f"s.{quote(n)}" for n in self._names if n not in keys}
        if not values:
            return 0
        if self.dialect.updates_join:
            assignments = ", ".join(f"t.{quote(name)} = {value}" for name, value in values.items())
            return db.run(
                f"UPDATE {rows} AS s {self.dialect.lookup} {self.table} AS t ON {same} SET {assignments} WHERE {where}"
            )
        assignments = ", ".join(f"{quote(name)} = {value}" for name, value in values.items())
        return db.run(f"UPDATE {self.table} AS t SET {assignments} FROM {rows} AS s WHERE {same} AND ({where})")

    def _deleted(self, db: Session) -> int:
        found = (
            f"FROM {self.staged.table} AS s {self.dialect.lookup} {self.table} AS t "
            f"ON {self._same_row()} WHERE s.{quote(DELETED)} AND {self._is_not_older()}"
        )
        if self.dialect.updates_join:
            return db.run(f"DELETE t {found}")
        keys, own = (", ".join(prefix + quote(k) for k in self.load.keys) for prefix in ("", "t."))
        return db.run(f"DELETE FROM {self.table} WHERE ({keys}) IN (SELECT {own} {found})")

    @property
    def _stays(self) -> str:
        return f"NOT coalesce(s.{quote(DELETED)}, 1 = 0)" if self.has_deletes else "1 = 1"

    def _is_not_older(self) -> str:
        if not self.load.cursor or self.load.later_wins or self._has_no_order:
            return "1 = 1"
        older = self._compared(self._ordered("s."), "<", self._ordered("t."))
        return f"coalesce(NOT ({older}), 1 = 1)"

    def _same_row(self) -> str:
        return " AND ".join(f"t.{quote(key)} = s.{quote(key)}" for key in self.load.keys)

    def _wins(self) -> str:
        """As for every target: the higher cursor; at equal ones the later read, if it says anything new."""
        rest = [name for name in self._names if name not in (*self.load.keys, *PROVENANCE)]
        apart = (self.dialect.distinct.format(f"s.{quote(n)}", f"t.{quote(n)}") for n in rest)
        differs = f"({' OR '.join(apart)})" if rest else "1 = 0"
        if not self.load.cursor or self.load.later_wins or self._has_no_order:
            return differs
        ours, theirs = self._ordered("s."), self._ordered("t.")
        above = self._compared(ours, ">", theirs)
        higher = f"coalesce({above}, {ours[0]} IS NOT NULL AND {theirs[0]} IS NULL)"
        unequal = " OR ".join(self.dialect.distinct.format(a, b) for a, b in zip(ours, theirs, strict=True))
        return f"{higher} OR ((NOT ({unequal}) OR {ours[0]} IS NULL) AND {differs})"

    @property
    def _has_no_order(self) -> bool:
        return any(self.schema[c].dataType.typeName() in self.unordered for c in self.load.cursor)

    def _ordered(self, prefix: str = "") -> list[str]:
        names = [prefix + quote(c) for c in self.load.cursor]
        if self.load.fallback is not None:
            names[0] = f"coalesce({names[0]}, {prefix}{quote(self.load.fallback)})"
        return names

    def _range(self) -> tuple[str, list[object]]:
        """The window as a condition on the table, for a load that replaces what it held of it."""
        check_range(self.load, has_order=not self._has_no_order)
        edges = [(self.load.intent.after, ">="), (self.load.intent.until, "<")]
        parts, values = [], []
        for position, operator in edges:
            if position is not None:
                names = self._ordered()[: len(position.values)]
                parts.append(self._compared(names, operator, [VALUE] * len(names)))
                bound = self._bound(position, self.load.cursor)
                ends = [len(names)] if self.dialect.compares_rows else range(1, len(names) + 1)
                values += [value for end in ends for value in bound[:end]]
        return " AND ".join(parts) or "1 = 1", values

    def _compared(self, ours: Sequence[str], sign: str, theirs: Sequence[str]) -> str:
        if self.dialect.compares_rows:
            return f"({', '.join(ours)}) {sign} ({', '.join(theirs)})"
        return compared(ours, sign, theirs)

    def _bound(self, position: Position, columns: Sequence[str]) -> list[object]:
        return [self._value(v, c) for v, c in zip(position.values, columns, strict=False)]

    def _value(self, value: Scalar, column: str) -> object:
        if isinstance(value, datetime) and self.schema[column].dataType.typeName() == "timestamp_ntz":
            return wall_time(value, self.load)
        return value
