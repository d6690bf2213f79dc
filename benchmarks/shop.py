"""A Postgres shop of any size, in a throw-away cluster, for measurements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psycopg
from tests.services import PostgresServer

CREATE = """
CREATE TABLE orders (
    order_id bigint PRIMARY KEY, customer_id int NOT NULL, status text NOT NULL,
    amount numeric(10, 2) NOT NULL, note text, updated_at timestamptz NOT NULL)
"""
ROWS = """
INSERT INTO orders
SELECT i, i % 50000, (ARRAY['new', 'paid', 'sent', 'done'])[1 + i % 4], (i % 100000) / 100.0, 'order ' || i,
       timestamptz '2026-01-01 00:00:00+00' + i * interval '1 second'
FROM generate_series({first}, {last}) i
"""


@dataclass
class Shop:
    server: PostgresServer
    folder: Path
    rows: int

    def __post_init__(self) -> None:
        self.url = self.server.create_database()
        self.execute(CREATE)
        self.execute(ROWS.format(first=1, last=self.rows))
        self.execute("CREATE INDEX ON orders (updated_at)")
        self.execute("ANALYZE orders")
        self.folder.mkdir(parents=True, exist_ok=True)

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as db:
            db.execute(statement.encode())

    def change(self, updates: int, inserts: int) -> None:
        """Updates spread over the whole table, and new orders, all stamped a moment after the newest."""
        newest = "(SELECT max(updated_at) + interval '1 second' FROM orders)"
        self.execute(
            f"UPDATE orders SET status = 'changed', updated_at = {newest} "
            f"WHERE order_id % {max(self.rows // max(updates, 1), 1)} = 0 AND order_id <= {self.rows}"
        )
        self.execute(ROWS.format(first=self.rows + 1, last=self.rows + inserts))
        self.execute(f"UPDATE orders SET updated_at = {newest} WHERE order_id > {self.rows}")
        self.rows += inserts

    def declare(self, extra: str = "") -> Path:
        path = self.folder / "floodmark.yml"
        path.write_text(
            f'connections:\n  shop: {{type: postgres, url: "{self.url}"}}\n  lake: {{type: delta, path: lake}}\n'
            "pipelines:\n  orders:\n    source: {connection: shop, table: orders}\n"
            "    change: {by: timestamp, column: updated_at, delay: 0s}\n"
            "    target: {connection: lake, table: orders, mode: upsert, keys: [order_id]}\n" + extra
        )
        return path
