"""A file that several processes change: one at a time, and each change whole or not at all."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from floodmark.errors import StateError

POLL = 0.005
"""Seconds between two tries for the lock; flock itself has no time-out."""


class LockedFile:
    """Readers need no lock: they see the file before a change or after it."""

    def __init__(self, path: str | os.PathLike[str], wait: timedelta) -> None:
        # Through a symbolic link, or the first change would put a file in the link's place.
        self.path = Path(os.path.realpath(path))
        self._wait = wait
        self._lock = self.path.with_name(f"{self.path.name}.lock")
        self._new = self.path.with_name(f"{self.path.name}.new")

    def read(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._refusal("read", error) from error

    @property
    def where(self) -> str:
        return str(self.path)

    def change(self, edit: Callable[[bytes | None], bytes | None]) -> None:
        with self.locked():
            content = edit(self.read())
            if content is not None:
                self.replace(content)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The lock file stays: removing it would let two processes lock two different files."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise self._refusal("written", error) from error
        try:
            self._wait_for(lock)
            try:
                yield
            finally:
                # Said outright: a forked child may still hold this descriptor, and with it the lock.
                fcntl.flock(lock, fcntl.LOCK_UN)
        finally:
            os.close(lock)

    def replace(self, content: bytes) -> None:
        """Under the lock. After a crash at any moment the old content is there or the new, never a mixture."""
        try:
            self._write_new(content)
            os.replace(self._new, self.path)
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            with suppress(OSError):
                self._new.unlink(missing_ok=True)
            raise self._refusal("written", error) from error

    def _write_new(self, content: bytes) -> None:
        mode = 0o666
        if self.path.exists():
            # Replacing needs rights on the folder only, so a write-protected file would be lost without this.
            if not os.access(self.path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
                raise PermissionError(13, "the file is write-protected")
            mode = self.path.stat().st_mode & 0o777
        # We hold the lock, so a file of this name was left by a process that died.
        self._new.unlink(missing_ok=True)
        new = os.open(self._new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(new, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def _wait_for(self, lock: int) -> None:
        deadline = time.monotonic() + self._wait.total_seconds()
        while True:
            try:
                return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise StateError(
                        f"another process has kept {self.path} locked for {self._wait.total_seconds():g} s",
                        hint=f"see who it is: fuser {self._lock}",
                    ) from error
            except OSError as error:
                raise self._refusal("locked", error) from error
            time.sleep(POLL)

    def _refusal(self, doing: str, error: OSError) -> StateError:
        return StateError(
            f"{self.path} can't be {doing}: {error.strerror or error}",
            hint=f"check the rights and the space on {self.path.parent}, or point `state:` elsewhere",
        )
