"""Staged events into a table of versions, within one transaction."""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.connections.names import quote
from floodmark.model.names import PROVENANCE
from floodmark.model.outcome import Rows
from floodmark.model.target import HistorySpec
from floodmark.targets.database.promote import Promotion
from floodmark.targets.database.session import VALUE, Session
from floodmark.targets.history import Timeline

VERSIONS = "floodmark_versions_now"
"""A temporary table: what the table shall hold of the keys that the batch is about."""


@dataclass(frozen=True)
class Versions(Promotion):
    names: HistorySpec

    def run(self, db: Session) -> Rows:
        self._check_count(db)
        timeline = Timeline(
            quote, self.dialect.distinct, self.names, self._row, self.load, VALUE, has_deletes=self.has_deletes
        )
        removed = self._cleared(db)
        kept = None if self.load.intent.full else self._kept()
        whole_read = kept is not None and not self.load.cursor
        versions = timeline.versions(self.staged.table, kept)
        db.run(f"CREATE TEMPORARY TABLE {VERSIONS} AS {versions}", [self.load.head.at] if whole_read else ())
        deleted = removed + self._vanished(db)
        updated = self._corrected(db)
        columns = ", ".join(map(quote, self._names))
        inserted = db.run(
            f"INSERT INTO {self.table} ({columns}) SELECT {columns} FROM {VERSIONS} AS s "
            f"WHERE NOT EXISTS (SELECT 1 FROM {self.table} AS t WHERE {self._same_version()})"
        )
        db.run(f"DROP {self.dialect.temporary}TABLE {VERSIONS}")
        return Rows(self.staged.rows, inserted, updated, deleted)

    @property
    def _row(self) -> list[str]:
        return [name for name in self._names if name not in self.names.names]

    def _kept(self) -> str:
        """By lookups, key by key; after a read of the whole table, all."""
        if not self.load.cursor:
            return self.table
        keys = ", ".join(map(quote, self.load.keys))
        some = f"(SELECT DISTINCT {keys} FROM {self.staged.table}) AS s"
        return f"(SELECT t.* FROM {some} {self.dialect.lookup} {self.table} AS t ON {self._same_row()})"

    def _vanished(self, db: Session) -> int:
        """Versions that the source no longer says; next to never any, so a look first. Laid side by side: there are
        databases that would compare each with each, to find what is in one of them alone."""
        names = ", ".join(quote(k) for k in (*self.load.keys, self.names.valid_from))
        both = (
            f"SELECT {names}, 0 AS _floodmark_said FROM {self._kept()} AS t UNION ALL SELECT {names}, 1 FROM {VERSIONS}"
        )
        gone = f"SELECT {names} FROM ({both}) AS b GROUP BY {names} HAVING max(_floodmark_said) = 0"
        if self.load.intent.full or not db.ask(f"SELECT 1 FROM ({gone}) AS g LIMIT 1"):
            return 0
        # By way of a derived table: MySQL reads no table that it deletes from.
        return db.run(f"DELETE FROM {self.table} WHERE ({names}) IN (SELECT * FROM ({gone}) AS g)")

    def _corrected(self, db: Session) -> int:
        rest = [n for n in self._names if n not in (*self.load.keys, self.names.valid_from, *PROVENANCE)]
        differs = " OR ".join(self.dialect.distinct.format(f"s.{quote(n)}", f"t.{quote(n)}") for n in rest)
        return self._assign(db, VERSIONS, self._same_version(), differs, self.load.keys)

    def _same_version(self) -> str:
        begins = quote(self.names.valid_from)
        return f"{self._same_row()} AND t.{begins} = s.{begins}"
