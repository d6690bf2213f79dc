"""The table that quick.py has copied: orders of any number in a throw-away Postgres, changed by the clock."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any, LiteralString, NamedTuple

import psycopg
from tests.services import PostgresServer

CREATE = """
CREATE TABLE orders (
    order_id bigint PRIMARY KEY, customer_id int NOT NULL, status text NOT NULL, amount numeric(12, 2) NOT NULL,
    items smallint NOT NULL, note text, created_at timestamptz NOT NULL, updated_at timestamptz NOT NULL)
"""
FILL = """
INSERT INTO orders
SELECT i, hashint8(i) & 262143, (ARRAY['new', 'paid', 'sent', 'done'])[1 + i %% 4], (hashint8(i) & 1048575) / 100.0,
       1 + i %% 9, CASE WHEN i %% 3 > 0 THEN 'order ' || md5(i::text) END,
       timestamptz '2026-01-01 00:00:00+00' + i * interval '100 milliseconds',
       timestamptz '2026-01-01 00:00:00+00' + i * interval '101 milliseconds'
FROM generate_series(1, %s::bigint) i
"""
# The clock, not now(): rows of one statement would all tie, and each tool reads the ties at its mark again.
CHANGE = """
UPDATE orders SET status = 'changed', amount = amount + 0.01 * (1 + order_id %% 7), updated_at = clock_timestamp()
WHERE order_id = ANY(%s)
"""
SETTLED = 2
"""Seconds from the last change to the runs. One of the last second is loaded, and read again by the next run."""
FACTS: LiteralString = "SELECT count(*), sum(amount) FROM orders"


class Facts(NamedTuple):
    """What a true copy has in common with the source. Each change moves the sum."""

    rows: int
    amount: Decimal


class Orders:
    def __init__(self, server: PostgresServer, rows: int, seed: int = 1) -> None:
        self.url = server.create_database()
        self.rows = rows
        self._random = random.Random(seed)
        with self._connect() as db:
            db.execute(CREATE)
            db.execute(FILL, [rows])
            db.execute("CREATE INDEX ON orders (updated_at)")
            db.execute("VACUUM ANALYZE orders")

    def change(self, count: int) -> None:
        """Rows from all over the table, other ones each time."""
        keys = self._random.sample(range(1, self.rows + 1), count)
        with self._connect() as db:
            db.execute(CHANGE, [keys])
            db.execute("SELECT pg_sleep(%s)", [SETTLED])

    def facts(self) -> Facts:
        with self._connect() as db:
            found = db.execute(FACTS).fetchone()
        assert found is not None
        return Facts(*found)

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.url, autocommit=True)
