"""SQLite files. One writer at a time is SQLite's own rule, so holding the write lock for a moment proves that nobody
is in the middle of writing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from floodmark.errors import ConfigError, SourceError
from floodmark.model.ledger import PendingLook
from floodmark.model.plan import Guarantee, Look
from floodmark.model.position import Position, Scalar
from floodmark.model.spec import ConnectionOptions, PipelineSpec
from floodmark.model.table import Column, Cursor, TableInfo
from floodmark.ports import LookRequest, ReadRequest
from floodmark.sources.bound import delayed, delayed_bound, floor_to, later_of
from floodmark.sources.look import Probe
from floodmark.sources.sql import CursorSql, local_time, next_cut, quote, split_name, text_literal, utc_time
from floodmark.sources.sqlite_time import TimeForm, detect_form, parse_time
from floodmark.sources.sqlite_types import as_text, type_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOCK_WAIT = 2.0
"""Seconds to wait for a writer to finish before the look goes on without proof."""


class SqliteConnection(ConnectionOptions):
    """A SQLite database file."""

    type: Literal["sqlite"] = "sqlite"
    path: str = Field(description="The database file, relative to the YAML file.")


class SqliteSource:
    def __init__(self, connection: SqliteConnection, spec: PipelineSpec, root: Path) -> None:
        self._spec = spec
        self._path = root / connection.path
        self._name = spec.source.table
        self._db: sqlite3.Connection | None = None
        self._forms: dict[str, TimeForm] = {}

    # -- the database ---------------------------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        if self._db is None:
            if not self._path.is_file():
                raise SourceError(
                    f"there is no SQLite file {self._path}", declared_at=self._spec.at("source.connection")
                )
            self._db = sqlite3.connect(
                f"{self._path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=LOCK_WAIT
            )
            self._db.create_function("floodmark_hash", -1, _hash_row, deterministic=True)
            self._db.create_aggregate("floodmark_sum", 1, _Sum)
        return self._db

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        try:
            return self._connect().execute(statement).fetchall()
        except sqlite3.Error as error:
            raise SourceError(f"{self._path.name}: {error}", table=self._name) from error

    @property
    def _table(self) -> str:
        return ".".join(quote(part) for part in split_name(self._name))

    def describe(self) -> TableInfo:
        found = self._rows(f"PRAGMA table_info({quote(split_name(self._name)[-1])})")
        if not found:
            raise self._unknown_table()
        columns = tuple(_column(name, declared, bool(notnull), pk) for _, name, declared, notnull, _, pk in found)
        keys = sorted((pk, name) for _, name, _, _, _, pk in found if pk)
        return TableInfo(self._name, columns, tuple(name for _, name in keys))

    def _unknown_table(self) -> ConfigError:
        names = [row[0] for row in self._rows("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
        close = get_close_matches(self._name, names, n=1)
        guess = f"did you mean {close[0]}? " if close else ""
        return ConfigError(
            f"there is no table {self._name} in {self._path.name}",
            table=self._name,
            declared_at=self._spec.at("source.table"),
            hint=f"{guess}Tables of {self._path.name}: {', '.join(sorted(names)) or 'none'}",
        )

    def count_nulls(self, columns: Sequence[str]) -> int:
        where = " OR ".join(f"{quote(name)} IS NULL" for name in columns)
        return int(self._rows(f"SELECT count(*) FROM {self._table} WHERE {where}")[0][0])

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    # -- the look -------------------------------------------------------------------------------------------------

    def look(self, request: LookRequest) -> Look:
        cursor = request.cursor
        probe = Probe(
            self._cursor_sql(cursor),
            lambda statement: self._fetch(statement, cursor),
            lambda statement: int(self._rows(statement)[0][0]),
            self._checksum,
        )
        clock, guarantee = self._fence(request.delay)

        def bound(highest: Position | None) -> tuple[Position | None, PendingLook | None]:
            if guarantee.name != "fenced":
                return delayed_bound(request, clock, highest)
            # Seconds, whatever the column shows: CURRENT_TIMESTAMP writes whole ones.
            now = Position.before(floor_to(clock, timedelta(seconds=1)))
            return later_of(request.after, now if cursor.leading.kind == "timestamp" else highest), None

        return probe.look(request, clock, bound, guarantee)

    def _fence(self, delay: timedelta) -> tuple[datetime, Guarantee]:
        """The clock while nobody writes. Whoever writes later reads a later clock, or is not fenced anywhere."""
        db = self._connect()
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            return datetime.now(UTC), delayed(delay, f"the write lock can't be had for a moment: {error}")
        try:
            return datetime.now(UTC), Guarantee("fenced")
        finally:
            db.execute("ROLLBACK")

    def _checksum(self, where: str) -> str:
        columns = ", ".join(quote(name) for name in self.describe().names)
        found = self._rows(f"SELECT floodmark_sum(floodmark_hash({columns})) FROM {self._table} WHERE {where}")
        return str(found[0][0] or 0)

    def next_cut(self, cursor: Cursor, after: Position | None, until: Position, rows: int) -> Position | None:
        sql = self._cursor_sql(cursor)
        return next_cut(sql, lambda statement: self._fetch(statement, cursor), after, until, rows)

    # -- positions as SQLite holds them ---------------------------------------------------------------------------

    def _cursor_sql(self, cursor: Cursor) -> CursorSql:
        for column in cursor.columns:
            if column.kind == "timestamp" and column.name not in self._forms:
                name = quote(column.name)
                ends = [
                    self._rows(f"SELECT {name} FROM {self._table} WHERE {name} IS NOT NULL ORDER BY {name} {d} LIMIT 1")
                    for d in ("ASC", "DESC")
                ]
                self._forms[column.name] = detect_form([row[0][0] for row in ends if row], self._name, column.name)
        return CursorSql(self._table, cursor, self._literal)

    def _literal(self, value: Scalar, column: Column, cursor: Cursor) -> str:
        if isinstance(value, datetime):
            form = self._forms[column.name]
            return text_literal(form.render(value if form.suffix else local_time(value, cursor)))
        return str(value) if isinstance(value, int) else text_literal(value)

    def _fetch(self, statement: str, cursor: Cursor) -> tuple[Scalar, ...] | None:
        found = self._rows(statement)
        if not found:
            return None
        return tuple(self._scalar(v, c, cursor) for v, c in zip(found[0], cursor.columns, strict=True))

    def _scalar(self, value: object, column: Column, cursor: Cursor) -> Scalar:
        if column.kind == "timestamp":
            detect_form([value], self._name, column.name)
            return utc_time(parse_time(str(value)), cursor)
        if column.kind == "integer" and not isinstance(value, int):
            raise SourceError(
                f'column "{column.name}" of {self._name} holds {value!r}, which is not a whole number',
                table=self._name,
                column=column.name,
                value=value,
            )
        return value if isinstance(value, int) else str(value)

    # -- reading --------------------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Nothing to share: one statement on one connection reads each batch, which is one view of the file."""
        yield None

    def read(self, spark: SparkSession, request: ReadRequest, snapshot: str | None) -> DataFrame:  # noqa: ARG002
        from pyspark.sql import functions as F

        table = self.describe()
        where = "1=1"
        if request.cursor is not None:
            where = self._cursor_sql(request.cursor).bounds(request.after, request.until)
        columns = ", ".join(as_text(c) for c in table.columns)
        wire = {c.name: "binary" if type_of(c.declared).spark == "binary" else "string" for c in table.columns}
        text = spark.read.jdbc(
            f"jdbc:sqlite:{self._path}",
            f"(SELECT {columns} FROM {self._table} WHERE {where}) q",
            properties={
                "driver": "org.sqlite.JDBC",
                "fetchsize": str(self._spec.source.fetch_size),
                "customSchema": ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in wire.items()),
            },
        )
        return text.select(
            *(
                F.col(f"`{c.name.replace('`', '``')}`").cast(type_of(c.declared).spark).alias(c.name)
                for c in table.columns
            )
        )


def _column(name: str, declared: str, notnull: bool, pk: int) -> Column:
    kind = type_of(declared).kind
    # Only an INTEGER PRIMARY KEY excludes NULL by itself in SQLite.
    rowid = bool(pk) and declared.upper() == "INTEGER"
    return Column(name, declared or "untyped", kind, nullable=not (notnull or rowid))


def _hash_row(*values: object) -> int:
    return int.from_bytes(blake2b(repr(values).encode(), digest_size=7).digest())


class _Sum:
    """Order-free, and wide enough that SQLite's own sum can't overflow."""

    def __init__(self) -> None:
        self.total = 0

    def step(self, value: int) -> None:
        self.total = (self.total + value) % 2**62

    def finalize(self) -> int:
        return self.total
