"""The tables of the SQL store, and how the database is opened. Portable; SQLite's own ways are in `sqlite.py`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    insert,
    inspect,
    select,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from floodmark.errors import ConfigError, StateError, redact
from floodmark.model.ledger import FORMAT
from floodmark.state import sqlite
from floodmark.state.form import check_format, damaged

TABLES = MetaData()
# 512 characters still fit into a MySQL key, four bytes each.
PIPELINES = Table(
    "floodmark_pipelines",
    TABLES,
    Column("name", String(512), primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
)
LEASES = Table(
    "floodmark_leases",
    TABLES,
    Column("resource", String(512), primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("beat", BigInteger, nullable=False),
    Column("released", Boolean, nullable=False),
    Column("owner", Text, nullable=False),
)
RUNS = Table(
    "floodmark_runs",
    TABLES,
    # SQLite numbers rows by itself only in a column that is exactly INTEGER.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("pipeline", String(512), nullable=False),
    Column("started_at", String(32), nullable=False),
    Column("body", Text, nullable=False),
    Index("floodmark_runs_newest", "pipeline", "id"),
)
META = Table("floodmark_meta", TABLES, Column("format", Integer, nullable=False))


class Database:
    """Opened at the first transaction, and its tables made if they are not there."""

    def __init__(self, url: str | Path, wait: timedelta) -> None:
        self._url = _parsed(url)
        self._wait = wait
        self._opening = threading.Lock()
        self._engine: Engine | None = None
        self.where = _shown(self._url)
        """For people: the file, or the URL without its password."""

    @contextmanager
    def transaction(self, *, writes: bool = False) -> Iterator[Connection]:
        how = sqlite.begin_with(writes=writes)
        with self._explained(), self._opened().connect().execution_options(**how) as connection, connection.begin():
            yield connection

    def close(self) -> None:
        with self._opening:
            if self._engine is not None:
                self._engine.dispose()
                self._engine = None

    def _opened(self) -> Engine:
        with self._opening:
            if self._engine is None:
                self._engine = self._open()
            return self._engine

    def _open(self) -> Engine:
        is_sqlite = self._url.get_backend_name() == "sqlite"
        engine = sqlite.engine(self._url, self._wait) if is_sqlite else create_engine(self._url, pool_pre_ping=True)
        try:
            if not self._is_ours(engine):
                if is_sqlite:
                    sqlite.use_wal(engine, self._wait)
                self._create(engine)
        except BaseException:
            engine.dispose()
            raise
        return engine

    def _is_ours(self, engine: Engine) -> bool:
        """Only looks: nothing is written to a database of a newer format."""
        with engine.connect() as connection:
            if not inspect(connection).has_table(META.name):
                return False
            found = connection.scalar(select(META.c.format))
        if found is not None:
            check_format(found, self.where)
        return found is not None

    def _create(self, engine: Engine) -> None:
        # One writing transaction: whoever comes second finds everything made.
        with engine.connect().execution_options(**sqlite.begin_with(writes=True)) as connection, connection.begin():
            TABLES.create_all(connection)
            if connection.scalar(select(META.c.format)) is None:
                connection.execute(insert(META).values(format=FORMAT))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StateError(
                f"{self.where} can't be opened: {error.strerror or error}",
                hint="check the rights on the folder, or point `state:` elsewhere",
            ) from error
        except SQLAlchemyError as error:
            raise self._refusal(error) from error

    def _refusal(self, error: SQLAlchemyError) -> StateError:
        # Only the driver's own words: SQLAlchemy's would show the statement and what was to be written.
        words = str(error.orig) if isinstance(error, DBAPIError) else type(error).__name__
        words = redact(words, [str(self._url.password)] if self._url.password else [])
        if sqlite.is_damaged(error):
            return damaged(self.where, words)
        return StateError(f"{self.where}: {words}", hint=sqlite.hint(error) or "check the database and its rights")


def _parsed(url: str | Path) -> URL:
    if isinstance(url, Path):
        return URL.create("sqlite", database=str(url))
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        # Without its cause, which may quote the URL and the password in it.
        raise ConfigError("the state's URL can't be read", hint="for example sqlite:///.floodmark/state.db") from None


def _shown(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return url.database or "SQLite in memory"
    return url.render_as_string(hide_password=True)
