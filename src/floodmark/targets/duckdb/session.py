"""A DuckDB file, open no longer and no wider than need be: whoever has it open to write keeps all other processes out,
readers too."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark.connections.names import quote
from floodmark.errors import MissingExtra
from floodmark.targets.database.session import VALUE, begun

if TYPE_CHECKING:
    import duckdb

MEMORY = "1GB"
"""That DuckDB takes before it goes on, on disk: the JVM wants its own."""


def driver() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtra("duckdb is not installed", hint="pip install 'floodmark[duckdb]'") from error
    return duckdb


class DuckdbSession:
    """Opened to read by the first question, and to write by the first statement."""

    def __init__(self, path: Path, schema: str) -> None:
        self._path = path
        self._schema = schema
        self._db: duckdb.DuckDBPyConnection | None = None
        self._writes = False

    def run(self, statement: str, values: Sequence[object] = ()) -> int:
        return int(_executed(self._writing(), statement, values).rowcount)

    def ask(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return _executed(self._reading(), statement, values).fetchall()

    def transaction(self) -> AbstractContextManager[None]:
        db = self._writing()
        return begun(db, db.begin)

    def close(self) -> None:
        """Until the next statement."""
        db, self._db, self._writes = self._db, None, False
        if db is not None:
            db.close()

    def _reading(self) -> duckdb.DuckDBPyConnection:
        if self._db is None:
            try:
                self._db = driver().connect(str(self._path), read_only=True)
            except driver().ConnectionException:
                self._db = driver().connect(str(self._path))  # this process has it open to write
        return self._db

    def _writing(self) -> duckdb.DuckDBPyConnection:
        if self._db is None or not self._writes:
            self.close()
            self._db, self._writes = driver().connect(str(self._path)), True
            self._db.execute(f"SET memory_limit = '{MEMORY}'")
            self._db.execute("SET preserve_insertion_order = false")  # rows need not wait for those before them
            self._db.execute(f"CREATE SCHEMA IF NOT EXISTS {quote(self._schema)}")
        return self._db


def _executed(db: duckdb.DuckDBPyConnection, statement: str, values: Sequence[object]) -> duckdb.DuckDBPyConnection:
    return db.execute(statement.replace(VALUE, "?"), list(values))
