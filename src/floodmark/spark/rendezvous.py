"""Where a run and the keeper of a warm Spark find each other: a socket that only this user can open, and lines of JSON
over it."""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

SUFFIX = ".sock"
LONGEST = 60
"""Of a folder's path: a socket's may have about a hundred characters in all."""


class Unsafe(OSError):
    """The folder for sockets is not this user's alone."""


def folder() -> Path:
    """Made when it is not there. Raises Unsafe where somebody else could put a socket of theirs in it."""
    own = os.environ.get("XDG_RUNTIME_DIR", "")
    usable = own and len(own) <= LONGEST
    place = Path(own) / "floodmark" if usable else Path(tempfile.gettempdir()) / f"floodmark-{os.getuid()}"
    with suppress(FileExistsError):
        place.mkdir(mode=0o700)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise Unsafe(f"{place} is not a folder of this user's alone")
    return place


class Line:
    """One end of a conversation."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._read = connection.makefile("rb")

    @classmethod
    def to(cls, path: Path, timeout: float | None = None) -> Line | None:
        """None where nobody listens, or somebody else than this user does."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(timeout)
            connection.connect(str(path))
            if peer_of(connection) != os.getuid():
                raise Unsafe(f"{path} is somebody else's")
        except OSError:
            connection.close()
            return None
        return cls(connection)

    def say(self, **words: Any) -> None:
        self._socket.sendall(json.dumps(words).encode() + b"\n")

    def hear(self) -> dict[str, Any] | None:
        """None when the other end has hung up, in whatever way."""
        try:
            line = self._read.readline()
            words = json.loads(line) if line.endswith(b"\n") else None
        except (OSError, ValueError):
            return None
        return words if isinstance(words, dict) else None

    def hang_up(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread that still listens
        self._read.close()
        self._socket.close()


def peer_of(connection: socket.socket) -> int:
    """The user at the other end."""
    if hasattr(socket, "SO_PEERCRED"):
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", told)[1])
    return os.getuid()  # elsewhere the folder alone keeps others out
