"""The heads of all loads into a schema's tables, in a table beside them: what lands, lands with its head or not at all.

The primary key is the fence: an ordinal is taken once, by whoever comes first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from floodmark.model.outcome import Head, Landed, Rows
from floodmark.targets.database.session import VALUE, Dialect, Session

TABLE = "floodmark_heads"
RECENT = 50
KEPT = 1000
"""Loads of a pipeline that are remembered."""

_COLUMNS = "ordinal, table_id, rows_read, inserted, updated, deleted, head"


@dataclass(frozen=True)
class Heads:
    """Of one pipeline into one table; `name` is the quoted name of the table that they are in."""

    dialect: Dialect
    name: str
    relation: str
    pipeline: str

    def create(self, db: Session) -> None:
        db.run(
            f"CREATE TABLE IF NOT EXISTS {self.name} (relation varchar(255), pipeline varchar(255), ordinal bigint, "
            "batch varchar(255) NOT NULL, table_id varchar(255) NOT NULL, rows_read bigint, inserted bigint, "
            f"updated bigint, deleted bigint, head {self.dialect.long_text} NOT NULL, "
            f"PRIMARY KEY (relation, pipeline, ordinal)){self.dialect.table_options}"
        )

    def landed(self, db: Session, *, deep: bool) -> tuple[Landed, ...]:
        """Newest first."""
        return self._found(db, f"ORDER BY ordinal DESC LIMIT {KEPT if deep else RECENT}")

    def find(self, db: Session, batch: str) -> Landed | None:
        found = self._found(db, f"AND batch = {VALUE}", batch)
        return found[0] if found else None

    def take(self, db: Session, head: Head, table_id: str) -> bool:
        """Inside the transaction that loads. Waits for another one that takes the same; False when it is taken."""
        insert, unless_taken = self.dialect.insert_once
        taken = db.run(
            f"{insert} {self.name} (relation, pipeline, ordinal, batch, table_id, head) "
            f"VALUES ({', '.join([VALUE] * 6)}) {unless_taken}",
            (*self._of, head.ordinal, head.batch, table_id, json.dumps(head.to_dict())),
        )
        return taken == 1

    def count(self, db: Session, ordinal: int, rows: Rows) -> None:
        ours = f"relation = {VALUE} AND pipeline = {VALUE} AND ordinal"
        db.run(
            f"UPDATE {self.name} SET rows_read = {VALUE}, inserted = {VALUE}, updated = {VALUE}, deleted = {VALUE} "
            f"WHERE {ours} = {VALUE}",
            (rows.read, rows.inserted, rows.updated, rows.deleted, *self._of, ordinal),
        )
        db.run(f"DELETE FROM {self.name} WHERE {ours} <= {VALUE}", (*self._of, ordinal - KEPT))

    @property
    def _of(self) -> tuple[str, str]:
        return (self.relation, self.pipeline)

    def _found(self, db: Session, which: str, *values: object) -> tuple[Landed, ...]:
        rows: Sequence[tuple[object, ...]] = db.ask(
            f"SELECT {_COLUMNS} FROM {self.name} WHERE relation = {VALUE} AND pipeline = {VALUE} {which}",
            (*self._of, *values),
        )
        return tuple(
            Landed(Head.from_dict(json.loads(str(head))), int(str(ordinal)), str(table_id), Rows(*counts))  # type: ignore[arg-type]
            for ordinal, table_id, *counts, head in rows
        )
