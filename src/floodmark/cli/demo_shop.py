"""The demo's shop: a SQLite database that is filled once and then traded in. It counts its own changes, so that the
runs' reports can be held against them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

ORDERS = 100_000
EVENTS = 5_000
BATCH_ROWS = 40_000
TIED = range(BATCH_ROWS - 150, BATCH_ROWS + 150)
"""First orders that share one timestamp, just where a cut by count would part them."""

PROJECT = f"""\
# Written by `floodmark demo`.
connections:
  shop: {{type: sqlite, path: shop.db}}
  lake: {{type: delta, path: lake}}

state: sqlite:///.floodmark/state.db

defaults:
  target: {{connection: lake}}

pipelines:
  orders:
    source: {{connection: shop, table: orders}}
    change: {{by: timestamp, column: updated_at}}
    target: {{table: orders, mode: upsert, keys: [order_id]}}
    batch_rows: {BATCH_ROWS}

  events:
    source: {{connection: shop, table: events}}
    change: {{by: sequence, column: event_id}}
    target: {{table: events, mode: append}}
"""

_TABLES = """
CREATE TABLE orders (
    order_id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL,
    status TEXT NOT NULL,
    amount DECIMAL(10, 2) NOT NULL,
    updated_at DATETIME NOT NULL
);
CREATE INDEX orders_updated_at ON orders (updated_at);
CREATE TABLE events (
    event_id INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at DATETIME NOT NULL
);
"""
_STATUSES = ("new", "paid", "packed", "shipped", "returned")


@dataclass(frozen=True)
class Trade:
    """What one burst of trading did."""

    updated: int
    inserted: int
    events: int


class Shop:
    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, orders: int = ORDERS, events: int = EVENTS) -> None:
        """Sixty days of orders, the last an hour ago."""
        end = datetime.now(UTC) - timedelta(hours=1)
        step = timedelta(days=60) / orders
        moments = (end - step * (orders - number) for number in range(orders))
        with self._writing() as db:
            db.executescript(_TABLES)
            db.execute("BEGIN IMMEDIATE")
            tie = _text(end - step * (orders - TIED.start))
            db.executemany(
                "INSERT INTO orders VALUES (?, ?, ?, ?, ?)",
                ((n + 1, *_order(n), tie if n in TIED else _text(moment)) for n, moment in enumerate(moments)),
            )
            db.executemany(
                "INSERT INTO events VALUES (?, ?, ?, ?)",
                ((n + 1, n * 19 % orders + 1, "viewed", _text(end)) for n in range(events)),
            )
            db.execute("COMMIT")

    def trade(self, *, updates: int, ties: int, inserts: int, events: int) -> Trade:
        """Updates one by one, then `ties` of them in one statement on one timestamp, then new orders and events."""
        with self._writing() as db:
            db.execute("BEGIN IMMEDIATE")
            last = int(db.execute("SELECT max(order_id) FROM orders").fetchone()[0])
            chosen = [1 + n * 61 % last for n in range(updates + ties)]
            done = 0
            for order in chosen[:updates]:
                done += db.execute(
                    "UPDATE orders SET status = 'shipped', updated_at = ? WHERE order_id = ?", (_now(), order)
                ).rowcount
            moment = _now()
            tied = [(moment, order) for order in chosen[updates:]]
            statement = "UPDATE orders SET status = 'paid', amount = amount + 1, updated_at = ? WHERE order_id = ?"
            done += db.executemany(statement, tied).rowcount
            added = db.executemany(
                "INSERT INTO orders VALUES (?, ?, ?, ?, ?)",
                ((last + n + 1, *_order(last + n), _now()) for n in range(inserts)),
            ).rowcount
            seen = db.executemany(
                "INSERT INTO events (order_id, kind, at) VALUES (?, 'placed', ?)",
                ((last + n + 1, _now()) for n in range(events)),
            ).rowcount
            db.execute("COMMIT")
        return Trade(updated=done, inserted=added, events=seen)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as db:
            yield db


def _order(number: int) -> tuple[int, str, float]:
    """Scattered, but the same each time."""
    return number * 7919 % 4_999 + 1, _STATUSES[number % len(_STATUSES)], (number * 37 % 90_000) / 100 + 1


def _now() -> str:
    """Read while the write lock is held, as a database's own default would be."""
    return _text(datetime.now(UTC))


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")
