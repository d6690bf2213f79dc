"""The demo's last word: every row of the source against every row of the target."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = Counter[tuple[Any, ...]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SOURCE = {
    "orders": "SELECT order_id, customer_id, status, printf('%.2f', amount), updated_at FROM orders",
    "events": "SELECT event_id, order_id, kind, at FROM events",
}
# Times as a number of microseconds, so that no time zone on the way can make two different ones look equal.
_TARGET = {
    "orders": ("order_id", "customer_id", "status", "cast(amount as string)", "unix_micros(updated_at)"),
    "events": ("event_id", "order_id", "kind", "unix_micros(at)"),
}


@dataclass(frozen=True)
class Verdict:
    rows: dict[str, int]
    """Of the source, by table."""
    differences: tuple[str, ...]

    @property
    def text(self) -> str:
        counted = " and ".join(f"{count:,} {table}" for table, count in self.rows.items())
        if self.differences:
            return f"✗ {counted}: source and target differ in {len(self.differences):,} rows"
        return f"✓ {counted}: source and target are equal, row by row"


def judge(shop: Path, lake: Path, spark: SparkSession) -> Verdict:
    rows: dict[str, int] = {}
    differences: list[str] = []
    for table in _SOURCE:
        source = source_rows(shop, table)
        frame = spark.read.format("delta").load(str(lake / table)).selectExpr(*_TARGET[table])
        rows[table] = source.total()
        differences += compare(table, source, Counter(tuple(row) for row in frame.collect()))
    return Verdict(rows, tuple(differences))


def source_rows(shop: Path, table: str) -> Rows:
    with closing(sqlite3.connect(shop)) as db:
        return Counter((*values, _micros(moment)) for *values, moment in db.execute(_SOURCE[table]))


def compare(table: str, source: Rows, target: Rows) -> list[str]:
    """Counted, not as sets: a row that is there twice is a difference too."""
    return [
        *_described(f"{table}: missing in target", (source - target).elements()),
        *_described(f"{table}: extra in target", (target - source).elements()),
    ]


def _described(what: str, rows: Iterable[tuple[Any, ...]]) -> list[str]:
    return [f"{what}  {', '.join(map(str, row))}" for row in rows]


def _micros(text: str) -> int:
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
