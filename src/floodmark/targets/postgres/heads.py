"""The heads of all loads into a schema's tables, in a table beside them: what lands, lands with its head or not at all.

The primary key is the fence: an ordinal is taken once, by whoever comes first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from floodmark.connections.names import quote
from floodmark.model.outcome import Head, Landed, Rows

if TYPE_CHECKING:
    import psycopg

TABLE = "floodmark_heads"
RECENT = 50
KEPT = 1000
"""Loads of a pipeline that are remembered."""

_COLUMNS = "ordinal, table_id, rows_read, inserted, updated, deleted, head"


class Heads:
    """Of one pipeline into one table."""

    def __init__(self, schema: str, table: str, pipeline: str) -> None:
        self._name = f"{quote(schema)}.{quote(TABLE)}"
        self._of = (table, pipeline)

    def create(self, db: psycopg.Connection[Any]) -> None:
        db.execute(
            f"CREATE TABLE IF NOT EXISTS {self._name} (relation text, pipeline text, ordinal bigint, "
            "batch text NOT NULL, at timestamptz NOT NULL DEFAULT now(), table_id bigint NOT NULL, rows_read bigint, "
            "inserted bigint, updated bigint, deleted bigint, head json NOT NULL, "
            "PRIMARY KEY (relation, pipeline, ordinal))".encode()
        )

    def landed(self, db: psycopg.Connection[Any], *, deep: bool) -> tuple[Landed, ...]:
        """Newest first."""
        limit = KEPT if deep else RECENT
        return self._found(db, f"ORDER BY ordinal DESC LIMIT {limit}", ())

    def find(self, db: psycopg.Connection[Any], batch: str) -> Landed | None:
        found = self._found(db, "AND batch = %s", (batch,))
        return found[0] if found else None

    def take(self, db: psycopg.Connection[Any], head: Head, table_id: int) -> bool:
        """Inside the transaction that loads. Waits for another one that takes the same; False when it is taken."""
        done = db.execute(
            f"INSERT INTO {self._name} (relation, pipeline, ordinal, batch, table_id, head) "
            "VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING".encode(),
            (*self._of, head.ordinal, head.batch, table_id, json.dumps(head.to_dict())),
        )
        return done.rowcount == 1

    def count(self, db: psycopg.Connection[Any], ordinal: int, rows: Rows) -> None:
        db.execute(
            f"UPDATE {self._name} SET rows_read = %s, inserted = %s, updated = %s, deleted = %s "
            "WHERE relation = %s AND pipeline = %s AND ordinal = %s".encode(),
            (rows.read, rows.inserted, rows.updated, rows.deleted, *self._of, ordinal),
        )
        db.execute(
            f"DELETE FROM {self._name} WHERE relation = %s AND pipeline = %s AND ordinal <= %s".encode(),
            (*self._of, ordinal - KEPT),
        )

    def _found(self, db: psycopg.Connection[Any], which: str, values: Sequence[object]) -> tuple[Landed, ...]:
        if db.execute(b"SELECT to_regclass(%s)", (self._name,)).fetchone() == (None,):
            return ()
        rows = db.execute(
            f"SELECT {_COLUMNS} FROM {self._name} WHERE relation = %s AND pipeline = %s {which}".encode(),
            (*self._of, *values),
        ).fetchall()
        return tuple(
            Landed(Head.from_dict(head), ordinal, str(table_id), Rows(*counts))
            for ordinal, table_id, *counts, head in rows
        )
