"""A table of a SQLite file. Spark stages the batch as Parquet; the driver loads it into a temporary table, and one
transaction promotes it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark.connections.names import quote
from floodmark.connections.sqlite import SqliteConnection
from floodmark.errors import ConfigError, TargetError
from floodmark.model.spec import PipelineSpec
from floodmark.targets.database.file import FileTarget
from floodmark.targets.database.names import mark_in, new_mark
from floodmark.targets.database.parquet import parquet, rows_of
from floodmark.targets.database.session import VALUE, Dialect, Session, Staged, begun
from floodmark.targets.sqlite.types import TYPES, as_kept, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField

OLDEST = (3, 33, 0)
"""The first SQLite that updates one table from another."""
LOCK_WAIT = 10.0
"""Seconds that a statement waits for the file to be free."""
STAGE = "temp.floodmark_stage"


@dataclass(frozen=True)
class SqliteSession:
    db: sqlite3.Connection

    def run(self, statement: str, values: Sequence[object] = ()) -> int:
        return self._executed(statement, values).rowcount

    def ask(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self._executed(statement, values).fetchall()

    def _executed(self, statement: str, values: Sequence[object]) -> sqlite3.Cursor:
        return self.db.execute(statement.replace(VALUE, "?"), [_kept(value) for value in values])

    def transaction(self) -> AbstractContextManager[None]:
        return begun(self.db, lambda: self.db.execute("BEGIN IMMEDIATE"))


class SqliteTarget(FileTarget):
    dialect = Dialect(distinct="{} IS NOT {}")
    types = TYPES
    unordered = (*FileTarget.unordered, "decimal")  # kept as text

    def __init__(self, connection: SqliteConnection, spec: PipelineSpec, root: Path) -> None:
        # SQLite has no schemas: a dot is part of the name.
        super().__init__(spec, root / connection.path, spec.target.table)
        if sqlite3.sqlite_version_info < OLDEST:
            raise ConfigError(
                f"this Python's SQLite is {sqlite3.sqlite_version}, and a target needs 3.33 or newer",
                declared_at=spec.at("target.connection"),
            )

    @property
    def resource(self) -> str:
        return f"sqlite:{self._path.resolve()}/{self._name}"

    @contextmanager
    def _staged(self, db: Session, batch: DataFrame) -> Iterator[Staged]:
        assert isinstance(db, SqliteSession)  # noqa: S101 - our own
        names = batch.schema.names
        rows = 0
        with parquet(as_kept(batch), self._path, self._name) as folder:
            # Without types: the values stay as they are until the table's own columns take them.
            db.run(f"CREATE TEMP TABLE floodmark_stage ({', '.join(map(self._stage_column, batch.schema.fields))})")
            statement = f"INSERT INTO {STAGE} VALUES ({', '.join('?' * len(names))})"
            for part in rows_of(folder):
                db.db.executemany(statement, part)
                rows += len(part)
        if self._looked_up:
            db.run(
                f"CREATE INDEX temp.floodmark_stage_keys ON floodmark_stage ({', '.join(map(quote, self._looked_up))})"
            )
        yield Staged(STAGE, rows)

    @property
    def _looked_up(self) -> tuple[str, ...]:
        """Who is missing from a whole table is found key by key."""
        return self._spec.target.keys if self._spec.target.mode == "history" else ()

    def _stage_column(self, field: StructField) -> str:
        """An index is of use only to a column of the same type."""
        kind = f" {self._sql_type(field.dataType, field.name)}" if field.name in self._looked_up else ""
        return f"{quote(field.name)}{kind}"

    # -- the table ------------------------------------------------------------------------------------------------

    def _remarks(self) -> tuple[str, str]:
        """SQLite keeps the statement as it was written: this tells a table from another of its name."""
        return f"/* {new_mark()} */ ", ""

    def _table_id(self, db: Session, table: str) -> str | None:
        found = db.ask(f"SELECT sql FROM sqlite_master WHERE type = 'table' AND name = {VALUE}", (table,))
        return mark_in(found[0][0]) if found else None

    def _declared(self, db: Session) -> list[tuple[str, str]]:
        return [(str(row[1]), str(row[2])) for row in db.ask(f"PRAGMA table_info({self._table})")]

    def _spark_type(self, declared: str) -> DataType | None:
        return spark_type(declared)

    def _widening(self, column: str, kind: str) -> str:
        raise TargetError(
            f'column "{column}" would have to become {kind}, and SQLite can\'t change the type of a column',
            table=self._name,
            column=column,
            hint=f"`columns: {{{column}: {{cast: …}}}}` keeps the old one; another table can have the new",
        )

    # -- the file -------------------------------------------------------------------------------------------------

    @contextmanager
    def _connected(self) -> Iterator[SqliteSession]:
        try:
            db = sqlite3.connect(self._path, isolation_level=None, timeout=LOCK_WAIT)
            try:
                yield SqliteSession(db)
            finally:
                db.close()
        except sqlite3.Error as error:
            raise TargetError(
                f"{self._path}: {error}",
                table=self._name,
                declared_at=self._spec.at("target"),
                transient="locked" in str(error),
            ) from error


def _kept(value: object) -> object:
    """As rows have it."""
    if not isinstance(value, datetime):
        return value
    moment = value if value.tzinfo is None else value.astimezone(UTC)
    return moment.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
