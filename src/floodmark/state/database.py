"""How the SQL store's database is opened, used and explained. What each has of its own is a module: see `ways.py`."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine, insert, inspect, select, update
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.schema import CreateTable

from floodmark.errors import ConfigError, MissingExtra, StateError, redact
from floodmark.model import ledger
from floodmark.state import mysql, postgres, sqlite
from floodmark.state.form import check_format, damaged
from floodmark.state.tables import META, TABLES
from floodmark.state.ways import Trouble, Ways

T = TypeVar("T")

DRIVERS: dict[str, tuple[str, Ways]] = {
    "sqlite": ("sqlite", sqlite),
    "postgresql": ("postgresql+psycopg", postgres),
    "postgres": ("postgresql+psycopg", postgres),
    "mysql": ("mysql+pymysql", mysql),
    "mariadb": ("mysql+pymysql", mysql),
}
"""By the URL's scheme: SQLAlchemy's name for the driver that we ship with."""

EXTRAS = {"psycopg": "postgres", "pymysql": "mysql"}

PAUSE = 0.05
"""Seconds, about, before a transaction that gave way is done again."""


class Database:
    """Opened at the first transaction, and its tables made if they are not there."""

    def __init__(self, url: str | Path, wait: timedelta) -> None:
        self._url, self._ways = _parsed(url)
        self._wait = wait
        self._opening = threading.Lock()
        self._engine: Engine | None = None
        self._is_older = False
        self.where = _shown(self._url)
        """For people: the file, or the URL without its password."""

    def read(self, work: Callable[[Connection], T]) -> T:
        return self._do(work, writes=False)

    def write(self, work: Callable[[Connection], T]) -> T:
        """All of it or nothing. Done again when the database made it give way to another, so `work` must bear that."""
        return self._do(work, writes=True)

    def stamp(self, connection: Connection) -> None:
        """With the first state in the new form: from now on an older Floodmark must not read this database."""
        if self._is_older:
            connection.execute(update(META).where(META.c.format < ledger.FORMAT).values(format=ledger.FORMAT))

    def close(self) -> None:
        with self._opening:
            if self._engine is not None:
                self._engine.dispose()
                self._engine = None

    def _do(self, work: Callable[[Connection], T], *, writes: bool) -> T:
        deadline = time.monotonic() + self._wait.total_seconds()
        while True:
            try:
                with self._explained():
                    return self._once(work, writes=writes)
            except Undone as undone:
                if time.monotonic() > deadline:
                    raise undone.refusal from undone.__cause__
            time.sleep(PAUSE * random.uniform(0.5, 1.5))  # noqa: S311 - so that two don't meet again

    def _once(self, work: Callable[[Connection], T], *, writes: bool) -> T:
        how = self._ways.begin_with(writes=writes)
        with self._opened().connect().execution_options(**how) as connection, connection.begin():
            return work(connection)

    def _opened(self) -> Engine:
        with self._opening:
            if self._engine is None:
                self._engine = self._open()
            return self._engine

    def _open(self) -> Engine:
        engine = self._made()
        try:
            found = self._format(engine)
            if found is None:
                self._ways.prepare(engine, self._wait)
                self._create(engine)
            self._is_older = found is not None and found < ledger.FORMAT
        except BaseException:
            engine.dispose()
            raise
        return engine

    def _made(self) -> Engine:
        try:
            return self._ways.engine(self._url, self._wait)
        except ModuleNotFoundError as error:
            module = (error.name or "").partition(".")[0]
            if module not in EXTRAS:
                raise
            hint = f"pip install 'floodmark[{EXTRAS[module]}]'"
            raise MissingExtra(f"{module} is not installed", hint=hint) from error

    def _format(self, engine: Engine) -> int | None:
        """None where it is not ours yet. Only looks: nothing is written to a database of a newer format."""
        with engine.connect() as connection:
            if not inspect(connection).has_table(META.name):
                return None
            found = connection.scalar(select(META.c.format))
        if found is not None:
            check_format(found, self.where)
        return found

    def _create(self, engine: Engine) -> None:
        """Several may do this at once, and on MySQL any of them may die between two tables: each table is whole by
        itself, and the row that says «ours» comes last."""
        how = self._ways.begin_with(writes=True)
        with engine.connect().execution_options(**how) as connection, connection.begin():
            self._ways.lock_creation(connection)
            for table in TABLES.sorted_tables:
                connection.execute(CreateTable(table, if_not_exists=True))
            if connection.scalar(select(META.c.format)) is None:
                # Refused where somebody else was a moment quicker, with the very same row.
                with suppress(IntegrityError):
                    connection.execute(insert(META).values(format=ledger.FORMAT))

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
            trouble = self._ways.trouble(error)
            refusal = self._refusal(error, trouble)
            raise (Undone(refusal) if trouble.was_undone else refusal) from error

    def _refusal(self, error: SQLAlchemyError, trouble: Trouble) -> StateError:
        # Only the driver's own words: SQLAlchemy's would show the statement and what was to be written.
        words = _words(error.orig) if isinstance(error, DBAPIError) else type(error).__name__
        words = redact(words, [str(self._url.password)] if self._url.password else [])
        if trouble.is_damage:
            return damaged(self.where, words)
        hint = trouble.hint or "check the database and its rights"
        return StateError(f"{self.where}: {words}", hint=hint, transient=trouble.is_transient)


def _words(error: BaseException | None) -> str:
    """Without the number that MySQL's driver puts before them."""
    numbered = error is not None and len(error.args) > 1 and isinstance(error.args[0], int)
    return str(error.args[1] if error is not None and numbered else error).strip()


class Undone(Exception):
    """The database gave another transaction the way, and nothing of ours is left."""

    def __init__(self, refusal: StateError) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


def _parsed(url: str | Path) -> tuple[URL, Ways]:
    if isinstance(url, Path):
        return URL.create("sqlite", database=str(url)), DRIVERS["sqlite"][1]
    try:
        parsed = make_url(url)
        driver, ways = DRIVERS[parsed.get_backend_name().lower()]
    except KeyError:
        raise ConfigError(
            "the state's URL is of no database that is known", hint=f"known: {', '.join(DRIVERS)}"
        ) from None
    except (ArgumentError, ValueError):
        # Without its cause, which may quote the URL and the password in it.
        raise ConfigError(
            "the state's URL can't be read",
            hint="for example postgresql://user:password@host/database; percent-encode the password (@ is %40)",
        ) from None
    return parsed.set(drivername=driver), ways


def _shown(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return url.database or "SQLite in memory"
    # Not the settings after the ?: a password may hide there too.
    return url.set(drivername=url.get_backend_name(), query={}).render_as_string(hide_password=True)
