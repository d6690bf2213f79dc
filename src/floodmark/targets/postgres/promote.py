"""Staged rows into the table, within one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from floodmark.connections.names import quote
from floodmark.errors import Refused, TargetError
from floodmark.model.names import OP, PROVENANCE
from floodmark.model.outcome import Load, Rows
from floodmark.model.position import Position, Scalar
from floodmark.targets.postgres.staging import ATTEMPT, Staged

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Promotion:
    """Of the rows in `stage`, with these columns, into `table`; both names are quoted."""

    table: str
    stage: str
    schema: StructType
    load: Load

    def run(self, db: psycopg.Connection[Any], staged: Staged) -> Rows:
        self._check_count(db, staged)
        deleted = self._cleared(db)
        updated = self._updated(db) if self._merges and not self.load.only_new else 0
        inserted = db.execute(self._insert().encode()).rowcount
        return Rows(staged.rows, inserted, updated, deleted)

    @property
    def _merges(self) -> bool:
        return (self.load.mode == "upsert" or self.load.only_new) and not self.load.intent.full

    @property
    def _names(self) -> list[str]:
        return self.schema.names

    def _check_count(self, db: psycopg.Connection[Any], staged: Staged) -> None:
        """Rows of attempts that Spark gave up go first; an unlogged table is empty after a crash of the server."""
        db.execute(f"DELETE FROM {self.stage} WHERE {quote(ATTEMPT)} <> ALL (%s)".encode(), (list(staged.attempts),))
        (found,) = db.execute(f"SELECT count(*) FROM {self.stage}".encode()).fetchone() or (0,)
        if found != staged.rows:
            raise TargetError(
                f"{staged.rows:,} rows were staged and {found:,} of them are there: the database has lost the others",
                hint="run again: nothing was loaded",
                transient=True,
            )

    def _cleared(self, db: psycopg.Connection[Any]) -> int:
        if self.load.intent.full:
            return db.execute(f"DELETE FROM {self.table}".encode()).rowcount
        if not self.load.intent.replaces:
            return 0
        predicate, values = self._range()
        return db.execute(f"DELETE FROM {self.table} WHERE {predicate}".encode(), values).rowcount

    def _insert(self) -> str:
        columns = ", ".join(map(quote, self._names))
        rows = f"INSERT INTO {self.table} ({columns}) SELECT {columns} FROM {self.stage} s"
        if self._merges:
            rows += f" WHERE NOT EXISTS (SELECT FROM {self.table} t WHERE {self._same_row()})"
        return rows

    def _updated(self, db: psycopg.Connection[Any]) -> int:
        keys = self.load.keys
        values = {n: "'update'" if n == OP else f"s.{quote(n)}" for n in self._names if n not in keys}
        if not values:
            return 0
        assignments = ", ".join(f"{quote(name)} = {value}" for name, value in values.items())
        return db.execute(
            f"UPDATE {self.table} t SET {assignments} FROM {self.stage} s "
            f"WHERE {self._same_row()} AND ({self._wins()})".encode()
        ).rowcount

    def _same_row(self) -> str:
        return " AND ".join(f"t.{quote(key)} = s.{quote(key)}" for key in self.load.keys)

    def _wins(self) -> str:
        """As for every target: the higher cursor; at equal ones the later read, if it says anything new."""
        rest = [name for name in self._names if name not in (*self.load.keys, *PROVENANCE)]
        ours, theirs = (f"ROW({', '.join(f'{side}.{quote(n)}' for n in rest)})" for side in "st")
        differs = f"{ours} IS DISTINCT FROM {theirs}" if rest else "false"
        if not self.load.cursor or self.load.later_wins or self._text_cursor:
            return differs
        ours, theirs = (f"ROW({', '.join(self._ordered(f'{side}.'))})" for side in "st")
        first, known = self._ordered("s.")[0], self._ordered("t.")[0]
        higher = f"coalesce({ours} > {theirs}, {first} IS NOT NULL AND {known} IS NULL)"
        later = f"{ours} IS NOT DISTINCT FROM {theirs} OR {first} IS NULL"
        return f"{higher} OR (({later}) AND {differs})"

    @property
    def _text_cursor(self) -> bool:
        return any(self.schema[c].dataType.typeName() in ("string", "varchar", "char") for c in self.load.cursor)

    def _ordered(self, prefix: str = "") -> list[str]:
        names = [prefix + quote(c) for c in self.load.cursor]
        if self.load.fallback is not None:
            names[0] = f"coalesce({names[0]}, {prefix}{quote(self.load.fallback)})"
        return names

    def _range(self) -> tuple[str, list[object]]:
        """The window as a condition on the table, for a load that replaces what it held of it."""
        if not self.load.cursor or self._text_cursor:
            why = "the cursor is text, whose order only the source knows" if self.load.cursor else "it has no cursor"
            raise Refused(
                f"the range is in the table already, and it can't be replaced there: {why}",
                hint="`--full-refresh` loads the whole table again in one commit",
            )
        edges = [(self.load.intent.after, ">="), (self.load.intent.until, "<")]
        parts, values = [], []
        for position, operator in edges:
            if position is not None:
                names = self._ordered()[: len(position.values)]
                parts.append(f"ROW({', '.join(names)}) {operator} ROW({', '.join(['%s'] * len(names))})")
                values += self._bound(position, self.load.cursor)
        return " AND ".join(parts) or "true", values

    def _bound(self, position: Position, columns: Sequence[str]) -> list[object]:
        return [self._value(v, c) for v, c in zip(position.values, columns, strict=False)]

    def _value(self, value: Scalar, column: str) -> object:
        """A column without a zone holds the wall's time."""
        if not isinstance(value, datetime) or self.schema[column].dataType.typeName() != "timestamp_ntz":
            return value
        zone = ZoneInfo(self.load.timezone) if self.load.timezone else UTC
        return value.astimezone(zone).replace(tzinfo=None)
