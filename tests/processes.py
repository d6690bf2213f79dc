"""Runners that can be paused at any step, overtaken, woken up and killed. One of them moves at a time, so the same
choices always lead to the same story."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tests.writers import Step


class Killed(BaseException):
    """No `except Exception` sees it, and nothing that it passes on its way can reach store or target any more."""


class Process:
    """`work` calls the step that it is given wherever it may be stopped."""

    def __init__(self, work: Callable[[Step], Any]) -> None:
        self._work = work
        self._turn, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._left: int | None = None
        self._killed = False
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None
        self._thread: threading.Thread | None = None

    def go(self, steps: int | None = None) -> bool:
        """So many steps, or to the end. True once it has ended."""
        self._left = steps
        if self._thread is None and steps is None:
            # Nobody comes in between: it needs no thread of its own.
            self._main()
            return True
        if self._thread is None:
            self._thread = threading.Thread(target=self._main, daemon=True)
            self._thread.start()
        else:
            self._turn.release()
        self._back.acquire()
        if self.done:
            self._thread.join()
        return self.done

    @property
    def failure(self) -> BaseException | None:
        """Raised, or told by its result."""
        return self.error or getattr(self.result, "failure", None)

    def kill(self) -> None:
        self._killed = True
        self.go()

    def _main(self) -> None:
        try:
            self.result = self._work(self._step)
        except Killed:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self.done = True
            self._back.release()

    def _step(self) -> None:
        if self._left == 0 and not self._killed:
            self._back.release()
            self._turn.acquire()
        if self._killed:
            raise Killed
        if self._left is not None:
            self._left -= 1
