"""A run that is asked to end: by Ctrl-C, by a container that is stopped, by a caller in another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from floodmark.errors import Stopped


class Stop:
    """Work looks at it between its steps, and says how to cut short the one that it is in. Nothing is ever raised into
    a step from outside: a commit that is under way ends one way or the other, and the ledger hears of it."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._cancels: list[Callable[[], object]] = []

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def ask(self) -> None:
        """May be called again and again: between two Spark jobs there is nothing to cancel."""
        self._asked.set()
        for cancel in tuple(self._cancels):
            cancel()

    def check(self) -> None:
        if self.asked:
            raise Stopped("stopped: what was committed stays, and the next run goes on from there")

    @contextmanager
    def cutting_short(self, cancel: Callable[[], object]) -> Iterator[None]:
        self.check()
        self._cancels.append(cancel)
        try:
            yield
        finally:
            self._cancels.remove(cancel)
