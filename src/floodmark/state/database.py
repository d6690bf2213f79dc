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

from floodmark.errors import ConfigError, MissingExtra, StateError, redact
from floodmark.model import ledger
from floodmark.state import mysql, postgres, sqlite
from floodmark.state.address import Address, parse_address
from floodmark.state.connections import Connections
from floodmark.state.form import check_format, damaged
from floodmark.state.statements import Statements, Taken
from floodmark.state.tables import TABLES
from floodmark.state.ways import Driver, Trouble, Ways

T = TypeVar("T")

DATABASES: dict[str, Ways] = {
    "sqlite": sqlite,
    "postgresql": postgres,
    "postgres": postgres,
    "mysql": mysql,
    "mariadb": mysql,
}
"""By the URL's scheme."""

EXTRAS = {"psycopg": "postgres", "pymysql": "mysql"}

PAUSE = 0.05
"""Seconds, about, before a transaction that gave way is done again."""


class Database:
    """Opened at the first transaction, and its tables made if they are not there."""

    def __init__(self, url: str | Path, wait: timedelta) -> None:
        self._address, self._ways = _parsed(url)
        self._wait = wait
        self._opening = threading.Lock()
        self._connections: Connections | None = None
        self._is_older = False
        self.where = _shown(self._address)
        """For people: the file, or the URL without its password."""

    def read(self, work: Callable[[Statements], T]) -> T:
        return self._do(work, writes=False)

    def write(self, work: Callable[[Statements], T]) -> T:
        """All of it or nothing. Done again when the database made it give way to another, so `work` must bear that."""
        return self._do(work, writes=True)

    def stamp(self, statements: Statements) -> None:
        """With the first state in the new form: from now on an older Floodmark must not read this database."""
        if self._is_older:
            statements.change("UPDATE floodmark_meta SET format = ? WHERE format < ?", ledger.FORMAT, ledger.FORMAT)

    def close(self) -> None:
        with self._opening:
            if self._connections is not None:
                self._connections.close()
                self._connections = None

    def _do(self, work: Callable[[Statements], T], *, writes: bool) -> T:
        driver = self._driver()
        deadline = time.monotonic() + self._wait.total_seconds()
        while True:
            try:
                with self._explained(driver), self._transaction(self._opened(driver), driver, writes=writes) as begun:
                    return work(begun)
            except Undone as undone:
                if time.monotonic() > deadline:
                    raise undone.refusal from undone.__cause__
            time.sleep(PAUSE * random.uniform(0.5, 1.5))  # noqa: S311 - so that two don't meet again

    @contextmanager
    def _transaction(self, connections: Connections, driver: Driver, *, writes: bool) -> Iterator[Statements]:
        with connections.lent() as connection:
            self._ways.begin(connection, self._wait, writes=writes)
            yield Statements(connection, self._ways, driver)
            connection.commit()

    def _opened(self, driver: Driver) -> Connections:
        with self._opening:
            if self._connections is None:
                self._connections = self._open(driver)
            return self._connections

    def _open(self, driver: Driver) -> Connections:
        connections = Connections(lambda: self._ways.connect(self._address, self._wait), self._ways, driver)
        try:
            with connections.lent() as connection:
                found = self._format(Statements(connection, self._ways, driver))
                connection.rollback()
                if found is None:
                    self._ways.prepare(connection, self._wait)
            if found is None:
                self._create(connections, driver)
            self._is_older = found is not None and found < ledger.FORMAT
        except BaseException:
            connections.close()
            raise
        return connections

    def _driver(self) -> Driver:
        try:
            return self._ways.driver()
        except ModuleNotFoundError as error:
            module = (error.name or "").partition(".")[0]
            if module not in EXTRAS:
                raise
            hint = f"pip install 'floodmark[{EXTRAS[module]}]'"
            raise MissingExtra(f"{module} is not installed", hint=hint) from error

    def _format(self, statements: Statements) -> int | None:
        """None where it is not ours yet. Only looks: nothing is written to a database of a newer format."""
        if not statements.value(self._ways.HAS_META):
            return None
        found: int | None = statements.value("SELECT format FROM floodmark_meta")
        if found is not None:
            check_format(found, self.where)
        return found

    def _create(self, connections: Connections, driver: Driver) -> None:
        """Several may do this at once, and on MySQL any of them may die between two tables: each table is whole by
        itself, and the row that says «ours» comes last."""
        with self._transaction(connections, driver, writes=True) as statements:
            statements.lock_creation()
            for table in TABLES:
                statements.change(table.format_map(self._ways.TYPES))
            if statements.value("SELECT format FROM floodmark_meta") is None:
                # Refused where somebody else was a moment quicker, with the very same row.
                with suppress(Taken):
                    statements.add("INSERT INTO floodmark_meta (format) VALUES (?)", ledger.FORMAT)

    @contextmanager
    def _explained(self, driver: Driver) -> Iterator[None]:
        try:
            yield
        except driver.Error as error:
            trouble = self._ways.trouble(error)
            refusal = self._refusal(error, trouble)
            raise (Undone(refusal) if trouble.was_undone else refusal) from error
        except OSError as error:
            raise StateError(
                f"{self.where} can't be opened: {error.strerror or error}",
                hint="check the rights on the folder, or point `state:` elsewhere",
            ) from error

    def _refusal(self, error: Exception, trouble: Trouble) -> StateError:
        words = redact(_words(error), [self._address.password] if self._address.password else [])
        if trouble.is_damage:
            return damaged(self.where, words)
        hint = trouble.hint or "check the database and its rights"
        return StateError(f"{self.where}: {words}", hint=hint, transient=trouble.is_transient)


def _words(error: Exception) -> str:
    """Without the number that MySQL's driver puts before them."""
    numbered = len(error.args) > 1 and isinstance(error.args[0], int)
    return str(error.args[1] if numbered else error).strip()


class Undone(Exception):
    """The database gave another transaction the way, and nothing of ours is left."""

    def __init__(self, refusal: StateError) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


def _parsed(url: str | Path) -> tuple[Address, Ways]:
    if isinstance(url, Path):
        return Address("sqlite", database=str(url)), sqlite
    try:
        address = parse_address(url)
        return address, DATABASES[address.kind]
    except KeyError:
        raise ConfigError(
            "the state's URL is of no database that is known", hint=f"known: {', '.join(DATABASES)}"
        ) from None
    except ValueError:
        # Without its cause, which may quote the URL and the password in it.
        raise ConfigError(
            "the state's URL can't be read",
            hint="for example postgresql://user:password@host/database; percent-encode the password (@ is %40)",
        ) from None


def _shown(address: Address) -> str:
    if address.kind == "sqlite":
        return address.database or "SQLite in memory"
    return address.shown
