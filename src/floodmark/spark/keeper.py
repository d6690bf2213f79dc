"""The background process that keeps a warm Spark between two runs: it owns the JVM, hands its address to runs of the
same user and configuration, and ends with it when nobody came for a while.

It never does a run's work (docs/decisions/0012): a run plans, reads the file and the environment, and talks to the
JVM by itself, so whatever belongs to a caller stays with the caller. A caller that vanishes takes the JVM along: nobody
knows what it was in the middle of.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from floodmark.spark.archive import Archive, launched
from floodmark.spark.launch import Command, Jvm
from floodmark.spark.rendezvous import Line, peer_of

MOST_RUNS = 100
"""Each leaves some objects behind in the JVM, so it is not kept for ever."""
TICK = 0.5


@dataclass(frozen=True)
class Order:
    """What the first caller asked for."""

    socket: str
    project: str
    command: Command
    log_file: str
    idle: float
    archives: str | None
    version: str

    @classmethod
    def read(cls, told: dict[str, Any]) -> Order:
        return cls(**{**told, "command": Command.from_dict(told["command"])})


class Keeper:
    def __init__(self, order: Order) -> None:
        self._order = order
        self._path = Path(order.socket)
        self._lock: IO[str] | None = None
        self._archive = None if order.archives is None else Archive(order.archives, order.command)
        self._attaching = threading.Lock()
        self._change = threading.Lock()
        self._clients: dict[int, int] = {}
        """Their processes."""
        self._warm = False
        self._retiring = False
        self._runs = 0
        self._started = time.time()
        self._last = time.monotonic()
        self._jvm: Jvm

    def keep(self) -> None:
        """Returns when there is nothing to keep any more, or when another keeper has the place."""
        listener = self._take_place()
        if listener is None:
            return
        self._jvm = launched(self._order.command, Path(self._order.log_file), self._archive)
        try:
            self._serve(listener)
        finally:
            self._leave_place()
            listener.close()
            self._jvm.end()
        if self._archive is not None:
            self._archive.make_in_background()

    # -- the place ------------------------------------------------------------------------------------------------

    def _take_place(self) -> socket.socket | None:
        self._lock = self._path.with_suffix(".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return None
        self._path.unlink(missing_ok=True)  # of one that was killed
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(self._order.socket)
        listener.listen()
        listener.settimeout(TICK)
        return listener

    def _leave_place(self) -> None:
        """Whoever comes next starts a keeper of their own."""
        with self._change:
            if self._lock is not None:
                self._path.unlink(missing_ok=True)
                self._lock.close()
                self._lock = None

    def _retire(self, now: bool = False) -> None:
        self._retiring = True
        self._leave_place()
        if now:
            self._jvm.process.kill()

    def _serve(self, listener: socket.socket) -> None:
        while self._jvm.process.poll() is None:
            with suppress(TimeoutError):
                connection, _ = listener.accept()
                connection.settimeout(None)
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()
            # Whoever comes at this very moment is not let in, and starts another one.
            enough = self._runs >= MOST_RUNS or time.monotonic() - self._last > self._order.idle
            if not self._clients and (self._retiring or enough):
                return

    # -- conversations --------------------------------------------------------------------------------------------

    def _talk(self, connection: socket.socket) -> None:
        line = Line(connection)
        with suppress(OSError):
            asked = line.hear() if peer_of(connection) == os.getuid() else None
            if asked is None:
                pass
            elif asked.get("ask") == "attach":
                self._attend(line, asked)
            elif asked.get("ask") == "status":
                line.say(**self._status())
            elif asked.get("ask") == "stop":
                line.say(clients=len(self._clients))
                self._retire(now=bool(asked.get("now") and self._clients))
            elif asked.get("ask") == "make room" and not self._clients:
                self._retire()
        line.hang_up()

    def _attend(self, line: Line, asked: dict[str, Any]) -> None:
        """One caller, from its arrival to its end."""
        number = id(line)
        with self._change:
            self._clients[number] = int(asked["pid"])
        try:
            clean = self._hand_over(line) and line.hear() == {"bye": True}
        finally:
            with self._change:
                del self._clients[number]
                self._runs += 1
                self._last = time.monotonic()
        if not clean:
            self._retire(now=not self._clients)

    def _hand_over(self, line: Line) -> bool:
        """One at a time: the first to come makes the Spark context."""
        with self._attaching:
            try:
                address = self._jvm.wait_for_address()
            except RuntimeError as error:
                line.say(error=str(error))
                return True
            line.say(port=address.port, secret=address.secret, warm=self._warm)
            attached = line.hear() == {"attached": True}
            self._warm = self._warm or attached
            return attached

    def _status(self) -> dict[str, Any]:
        idle = 0.0 if self._clients else time.monotonic() - self._last
        return {
            "pid": os.getpid(),
            "java": self._jvm.process.pid,
            "project": self._order.project,
            "version": self._order.version,
            "log": self._order.log_file,
            "started": self._started,
            "runs": self._runs,
            "busy": list(self._clients.values()),
            "idle": idle,
            "ends_in": max(self._order.idle - idle, 0),
        }


def main() -> None:
    order = Order.read(json.load(sys.stdin))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    Keeper(order).keep()


if __name__ == "__main__":
    main()
