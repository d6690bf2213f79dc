"""The connections of one store: a run beats its lease in one thread while it saves in another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from floodmark.state.ways import Connection, Driver, Ways


class Connections:
    """As many as are in use at once. One that is given back is lent again, once it has shown that it still lives."""

    def __init__(self, connect: Callable[[], Connection], ways: Ways, driver: Driver) -> None:
        self._connect = connect
        self._ways = ways
        self._driver = driver
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._is_closed = False

    @contextmanager
    def lent(self) -> Iterator[Connection]:
        """What was begun on it and not committed is undone."""
        connection = self._living() or self._connect()
        try:
            yield connection
        except Exception:
            self._undo(connection)
            raise
        except BaseException:
            # In the middle of whatever it was: the server's answer may still be on its way.
            self._drop(connection)
            raise
        self._give_back(connection)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            self._drop(connection)

    def _living(self) -> Connection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            with suppress(self._driver.Error, OSError):
                if self._ways.is_alive(connection):
                    return connection
            self._drop(connection)

    def _undo(self, connection: Connection) -> None:
        try:
            connection.rollback()
        except (self._driver.Error, OSError):
            self._drop(connection)
        else:
            self._give_back(connection)

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle.append(connection)
                return
        self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        with suppress(self._driver.Error, OSError):
            connection.close()
