"""A made-up source: a table in memory, transactions that commit when a test says so, and the real look over both."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, NamedTuple

from floodmark.connections.names import quote
from floodmark.model.ledger import ServerSeen
from floodmark.model.plan import Guarantee, Look
from floodmark.model.position import Position, Scalar
from floodmark.model.spec import PipelineSpec
from floodmark.model.table import Column, Cursor, TableInfo
from floodmark.ports import LookRequest, ReadRequest
from floodmark.sources.fence import Fence
from floodmark.sources.relation import relation_of
from floodmark.sources.sql import CursorSql
from floodmark.sources.sql_source import SqlSource
from floodmark.sources.sqlite.checksum import Sum, hash_row

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
"""Times are whole microseconds here."""

Step = Callable[[], None]
"""Asked wherever a process may be paused or die."""


class Row(NamedTuple):
    key: int
    value: int
    """The cursor: a number drawn from a sequence, or a time."""
    body: int
    """Another one with each write, so that no two versions of a row are alike."""


def number_of(position: Position) -> int:
    value = position.values[0]
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(microseconds=1)
    assert isinstance(value, int)
    return value


def scalar_of(value: int, timed: bool) -> int | datetime:
    return EPOCH + timedelta(microseconds=value) if timed else value


@dataclass
class Shop:
    """What is committed lies in SQLite; what is not, in the writers."""

    timed: bool
    clock: int = SECOND
    drawn: int = 0
    open: dict[str, list[Row]] = field(default_factory=dict)
    top: int = 0
    """The highest value that was ever committed."""
    blind: bool = False
    """Nobody can list the writers for now."""
    server: str = "server-1"
    _bodies: Iterator[int] = field(default_factory=lambda: count(1))
    _names: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.db.create_function("floodmark_hash", -1, hash_row, deterministic=True)
        self.db.create_aggregate("floodmark_sum", 1, Sum)
        self.db.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER NOT NULL, body INTEGER NOT NULL)")

    @property
    def rows(self) -> list[Row]:
        return [Row(*row) for row in self.db.execute("SELECT k, v, body FROM t ORDER BY v, k")]

    @property
    def locked(self) -> set[int]:
        return {row.key for rows in self.open.values() for row in rows}

    @property
    def now(self) -> datetime:
        return EPOCH + timedelta(microseconds=self.clock)

    def new_key(self) -> int:
        return 1 + max((row.key for row in [*self.rows, *(r for rows in self.open.values() for r in rows)]), default=0)

    def draw(self) -> int:
        """The database hands it out inside the writer's transaction, and after its lock on the row."""
        if self.timed:
            return self.clock
        self.drawn += 1
        return self.drawn

    def version(self, key: int, value: int | None = None) -> Row:
        return Row(key, self.draw() if value is None else value, next(self._bodies))

    def put(self, *rows: Row) -> None:
        self.db.executemany("INSERT OR REPLACE INTO t VALUES (?, ?, ?)", rows)
        self.top = max(self.top, *(row.value for row in rows))

    def begin(self) -> str:
        name = f"w{next(self._names)}"
        self.open[name] = []
        return name

    def end(self, name: str, *, commit: bool) -> None:
        rows = self.open.pop(name)
        if commit and rows:
            self.put(*rows)


@dataclass(frozen=True)
class Listing:
    writers: frozenset[str]

    def left(self, known: frozenset[str]) -> frozenset[str]:
        return known & self.writers


@dataclass(frozen=True)
class Batch:
    """In place of a DataFrame; read when it is made, as from a snapshot."""

    rows: tuple[Row, ...]
    columns: tuple[str, ...] = ("k", "v", "body")


class ShopSource(SqlSource):
    """The real look, fence and statements; only reading is our own."""

    def __init__(self, shop: Shop, spec: PipelineSpec, step: Step) -> None:
        self._shop = shop
        self._relation = relation_of(spec, quote)
        self._step = step
        self._viewing = False

    def describe(self) -> TableInfo:
        kind = ("timestamptz", "timestamp") if self._shop.timed else ("bigint", "integer")
        cursor = Column("v", *kind, nullable=False, zoned=self._shop.timed)  # type: ignore[arg-type]
        plain = [Column(name, "bigint", "integer", nullable=False) for name in ("k", "body")]
        return TableInfo("t", (plain[0], cursor, plain[1]), ("k",))

    def look(self, request: LookRequest) -> Look:
        clock = self._shop.now
        fence = Fence(self._writers)
        server = ServerSeen(identity=self._shop.server, clock=clock)
        return self._probe(request.cursor).look(
            request, clock, lambda top: fence.bound(request, clock, top), Guarantee("fenced"), server
        )

    def _writers(self) -> Listing | None:
        self._step()
        return None if self._shop.blind else Listing(frozenset(self._shop.open))

    @contextmanager
    def _view(self) -> Iterator[None]:
        self._step()
        self._viewing = True
        try:
            yield
        finally:
            self._viewing = False

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        yield None

    def read(self, spark: Any, request: ReadRequest, snapshot: str | None) -> Any:  # noqa: ARG002 - no Spark here
        assert not request.nulls
        return Batch(tuple(Row(*row) for row in self._rows(f"SELECT k, v, body FROM t WHERE {self._where(request)}")))

    def close(self) -> None:
        """Others go on with the same database."""

    # -- statements -----------------------------------------------------------------------------------------------

    def _rows(self, statement: str) -> list[Any]:
        if not self._viewing:
            self._step()
        return self._shop.db.execute(statement).fetchall()

    def _number(self, statement: str) -> int:
        return int(self._rows(statement)[0][0])

    def _fetch(self, statement: str, cursor: Cursor) -> tuple[Scalar, ...] | None:  # noqa: ARG002 - one column
        found = self._rows(statement)
        return (scalar_of(found[0][0], self._shop.timed),) if found else None

    def _checksum(self, where: str) -> str:
        return str(self._rows(f"SELECT floodmark_sum(floodmark_hash(k, v, body)) FROM t WHERE {where}")[0][0] or 0)

    def _cursor_sql(self, cursor: Cursor) -> CursorSql:
        return CursorSql(self._relation.sql, cursor, lambda value, *_: str(number_of(Position.before(value))))
