"""SQLite files. One writer at a time is SQLite's own rule, so holding the write lock for a moment proves that nobody
is in the middle of writing."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark.connections.names import quote, text_literal
from floodmark.connections.sqlite import SqliteConnection
from floodmark.errors import ConfigError, SourceError
from floodmark.model.ledger import PendingLook, ServerSeen
from floodmark.model.plan import Guarantee, Look
from floodmark.model.position import Position, Scalar
from floodmark.model.spec import PipelineSpec
from floodmark.model.table import Column, Cursor, TableInfo, TableName
from floodmark.ports import LookRequest, ReadRequest
from floodmark.sources.bound import Top, delayed, delayed_bound, floor_to, later_of
from floodmark.sources.fence import OFF
from floodmark.sources.relation import broken_query, check_names, relation_of
from floodmark.sources.sql import CursorSql, local_time, unknown_table, utc_time
from floodmark.sources.sql_source import SqlSource
from floodmark.sources.sqlite.checksum import Sum, hash_row
from floodmark.sources.sqlite.time import TimeForm, detect_form, misfitting, parse_time
from floodmark.sources.sqlite.types import type_of, wire_of
from floodmark.sources.wire import Wires, refuse_twins

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOCK_WAIT = 2.0
"""Seconds that a statement waits for the file to be free."""

_TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"


class SqliteSource(SqlSource):
    def __init__(self, connection: SqliteConnection, spec: PipelineSpec, root: Path) -> None:
        self._spec = spec
        self._path = root / connection.path
        self._relation = relation_of(spec, quote)  # SQLite has no schemas: a dot is part of the name
        self._name = self._relation.name
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
            self._db.create_function("floodmark_hash", -1, hash_row, deterministic=True)
            self._db.create_aggregate("floodmark_sum", 1, Sum)
        return self._db

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        try:
            return self._connect().execute(statement).fetchall()
        except sqlite3.Error as error:
            raise SourceError(
                f"{self._path.name}: {error}",
                table=self._name,
                declared_at=self._relation.declared_at,
                transient="locked" in str(error),
            ) from error

    def describe(self) -> TableInfo:
        table = self._relation.table or self._view_of_query()
        # table_xinfo has the generated columns too (2 and 3); 1 is hidden in a virtual table.
        found = [row[:6] for row in self._rows(f"PRAGMA table_xinfo({table})") if row[6] != 1]
        if not found:
            names = [row[0] for row in self._rows(_TABLES)]
            raise unknown_table(self._name, self._path.name, names, self._spec.at("source.table"))
        indexed = self._indexed(table)
        columns = tuple(
            _column(name, declared, bool(notnull), pk, name in indexed) for _, name, declared, notnull, _, pk in found
        )
        keys = sorted((pk, name) for _, name, _, _, _, pk in found if pk)
        info = TableInfo(self._name, columns, tuple(name for _, name in keys))
        return refuse_twins(info, self._relation.declared_at)

    def _indexed(self, table: str) -> set[str]:
        """Columns that lead an index of all rows."""
        whole = [row[1] for row in self._rows(f"PRAGMA index_list({table})") if not row[4]]
        return {str(self._rows(f"PRAGMA index_info({quote(name)})")[0][2]) for name in whole}

    def _view_of_query(self) -> str:
        """SQLite tells the declared types of a view's columns, and of nothing else that is not a table. A temporary one
        lives in this connection only."""
        view = "temp.floodmark_query"
        try:
            db = self._connect()
            # Without anything around it: SQLite gives a second column of one name another one there.
            asked = db.execute(self._relation.query or "")
            check_names([column[0] for column in asked.description or ()], self._relation)
            asked.close()
            db.execute(f"DROP VIEW IF EXISTS {view}")
            db.execute(f"CREATE TEMP VIEW floodmark_query AS SELECT * FROM {self._relation.sql}")
        except sqlite3.Error as error:
            raise broken_query(str(error), self._relation) from error
        return "floodmark_query"

    def list_tables(self) -> list[TableName]:
        found = self._rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY 1")
        return [TableName("", name, True) for (name,) in found]

    def _number(self, statement: str) -> int:
        return int(self._rows(statement)[0][0])

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    # -- the look -------------------------------------------------------------------------------------------------

    def look(self, request: LookRequest) -> Look:
        cursor = request.cursor
        if cursor.timezone is not None:
            raise ConfigError(
                "SQLite keeps no zones, so `timezone` can't be used here",
                declared_at=self._spec.at("change.timezone"),
                hint="store times in UTC, or follow the text itself with `by: sequence`",
            )
        probe = self._probe(cursor)
        self._refuse_misfits(cursor, request.after)
        clock, guarantee = self._fence(request)

        def bound(top: Top) -> tuple[Position | None, PendingLook | None]:
            if guarantee.name != "fenced":
                return delayed_bound(request, clock or datetime.now(UTC), top)
            highest = top()
            if cursor.leading.kind != "timestamp" or highest is None:
                return later_of(request.after, highest), None
            # Seconds, whatever the column shows: CURRENT_TIMESTAMP writes whole ones. Whoever holds the lock got it
            # after the last commit, and so writes nothing that is older than what can be seen.
            newest = clock or highest.values[0]
            assert isinstance(newest, datetime)  # noqa: S101 - of a timestamp
            return later_of(request.after, Position.before(floor_to(newest, timedelta(seconds=1)))), None

        now = clock or datetime.now(UTC)
        return probe.look(request, now, bound, guarantee, self._seen(now))

    def _fence(self, request: LookRequest) -> tuple[datetime | None, Guarantee]:
        """The clock while nobody writes, None while somebody does. Whoever writes later reads a later clock. Writers
        come one after the other, so numbers need no clock at all."""
        if request.fence == "off":
            return datetime.now(UTC), delayed(request.delay, OFF.reason, OFF.fix)
        db = self._connect()
        if not os.access(self._path, os.W_OK):
            # SQLite would take a read transaction for it and not complain.
            return datetime.now(UTC), delayed(request.delay, "the file is read-only, so its write lock can't be had")
        try:
            db.execute(f"PRAGMA busy_timeout = {int(request.wait.total_seconds() * 1000)}")
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return None, Guarantee("fenced")
        finally:
            db.execute(f"PRAGMA busy_timeout = {int(LOCK_WAIT * 1000)}")
        try:
            return datetime.now(UTC), Guarantee("fenced")
        finally:
            db.execute("ROLLBACK")

    def _seen(self, clock: datetime) -> ServerSeen:
        """The file, and the counter in its header that each change raises."""
        with self._path.open("rb") as file:
            file.seek(24)
            return ServerSeen(identity=str(os.stat(self._path).st_ino), log=int.from_bytes(file.read(4)), clock=clock)

    @contextmanager
    def _view(self) -> Iterator[None]:
        db = self._connect()
        db.execute("BEGIN")
        try:
            yield
        finally:
            db.execute("ROLLBACK")

    def _checksum(self, where: str) -> str:
        columns = ", ".join(quote(name) for name in self.describe().names)
        found = self._rows(f"SELECT floodmark_sum(floodmark_hash({columns})) FROM {self._relation.sql} WHERE {where}")
        return str(found[0][0] or 0)

    # -- positions as SQLite holds them ---------------------------------------------------------------------------

    def _cursor_sql(self, cursor: Cursor) -> CursorSql:
        for column in cursor.columns:
            if column.kind == "timestamp" and column.name not in self._forms:
                self._forms[column.name] = self._form(column)
        if cursor.fallback is not None and cursor.leading.kind == "timestamp":
            self._forms[cursor.fallback.name] = self._forms[cursor.leading.name]
        return CursorSql(self._relation.sql, cursor, self._literal)

    def _form(self, column: Column) -> TimeForm:
        name = quote(column.name)
        top = self._rows(
            f"SELECT {name} FROM {self._relation.sql} WHERE {name} IS NOT NULL ORDER BY {name} DESC LIMIT 1"
        )
        return detect_form(top[0][0], self._name, column.name) if top else TimeForm()

    def _refuse_misfits(self, cursor: Cursor, after: Position | None) -> None:
        """Another form sorts apart from its time, and its rows would be lost. On the day of the mark and later they may
        be anywhere; numbers sort below all text."""
        for place, column in enumerate((*cursor.columns, *([cursor.fallback] if cursor.fallback else []))):
            if column.kind != "timestamp":
                continue
            name, form = quote(column.name), self._forms[column.name]
            where = form.misfit(name)
            if place == 0 and after is not None and isinstance(after.values[0], datetime):
                day = text_literal(form.render(after.values[0])[:10])
                where = f"({name} >= {day} OR {name} < '') AND {where}"
            found = self._rows(f"SELECT {name} FROM {self._relation.sql} WHERE {where} LIMIT 1")
            if found:
                raise misfitting(found[0][0], form, self._name, column.name)

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
            detect_form(value, self._name, column.name)
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
        table = self.describe()
        where = self._where(request)
        wires = Wires(table, tuple(wire_of(c) for c in table.columns))
        rows = spark.read.jdbc(
            f"jdbc:sqlite:{self._path}",
            f"(SELECT {wires.select} FROM {self._relation.sql} WHERE {where}) q",
            properties={
                "driver": "org.sqlite.JDBC",
                "fetchsize": str(self._spec.source.fetch_size),
                "customSchema": wires.schema,
            },
        )
        return wires.typed(rows)


def _column(name: str, declared: str, notnull: bool, pk: int, indexed: bool) -> Column:
    kind = type_of(declared).kind
    # Only an INTEGER PRIMARY KEY excludes NULL by itself in SQLite.
    rowid = bool(pk) and declared.upper() == "INTEGER"
    return Column(name, declared or "untyped", kind, nullable=not (notnull or rowid), indexed=indexed)
