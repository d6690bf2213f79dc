"""A run's side of the resident runner: finds the keeper of a warm Spark for just this configuration, or starts one."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from floodmark.model.version import VERSION
from floodmark.spark import rendezvous
from floodmark.spark.keeper import Order
from floodmark.spark.launch import Address, Command
from floodmark.spark.rendezvous import Line

PATIENCE = 15.0
"""Seconds for a keeper to open its socket; it has little to import."""

OF_THE_TERMINAL = (
    *("PWD", "OLDPWD", "SHLVL", "_", "TERM", "COLUMNS", "LINES", "LS_COLORS", "PS1", "DISPLAY", "EDITOR", "PAGER"),
    *("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TERM_", "SSH_", "TMUX", "STY", "WINDOWID", "XDG_SESSION", "WAYLAND"),
    *("DBUS_", "VSCODE_", "PYTEST_", "FLOODMARK_"),
)
"""Variables that differ between two windows of one person and mean nothing to a JVM. All others count: Hadoop and the
drivers read credentials from the environment."""


@dataclass(frozen=True)
class Warm:
    """A JVM that somebody keeps, and this run's place at it."""

    line: Line

    def address(self) -> tuple[Address, bool]:
        """And whether there is a Spark context in it already. Raises RuntimeError when it did not start."""
        told = self.line.hear()
        if told is None or "error" in told:
            raise RuntimeError("Spark's keeper has ended" if told is None else str(told["error"]))
        return Address(int(told["port"]), str(told["secret"])), bool(told["warm"])

    def attached(self) -> None:
        self.line.say(attached=True)

    def leave(self, *, cleanly: bool) -> None:
        """Without a goodbye the JVM is ended: something is still at work in it, or nobody knows."""
        if cleanly:
            with suppress(OSError):
                self.line.say(bye=True)
        self.line.hang_up()


def attach(
    root: Path, command: Command, settings: Mapping[str, str], log_file: Path, idle: float, archives: Path | None
) -> Warm | None:
    """At once, though the JVM may still be starting. None where no keeper can be reached: then Spark has to start in
    this process."""
    try:
        place = rendezvous.folder() / name_of(root, command, settings)
    except OSError:
        return None
    line = Line.to(place)
    if line is None:
        _make_room(place)
        held = None if archives is None else str(archives)
        order = Order(str(place), str(root), command, str(log_file), idle, held, VERSION)
        line = _started(order, place)
    if line is None:
        return None
    try:
        line.say(ask="attach", pid=os.getpid())
    except OSError:
        return None
    return Warm(line)


def name_of(root: Path, command: Command, settings: Mapping[str, str]) -> str:
    """One for each project and configuration: the first half names the project."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(OF_THE_TERMINAL)}
    stamps = [(p, os.stat(p).st_mtime_ns if os.path.exists(p) else 0) for p in (*command.class_path, *command.drivers)]
    told = json.dumps([VERSION, sys.executable, asdict(command), stamps, dict(settings), environment], sort_keys=True)
    return f"{project_key(root)}-{hashlib.sha256(told.encode()).hexdigest()[:16]}{rendezvous.SUFFIX}"


def project_key(root: Path) -> str:
    return hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:10]


def _make_room(place: Path) -> None:
    """This project's idle ones with another configuration: two warm ones beside each other would only cost memory."""
    for other in place.parent.glob(f"{place.name.partition('-')[0]}-*{rendezvous.SUFFIX}"):
        if (line := Line.to(other, timeout=1)) is not None:
            with suppress(OSError):
                line.say(ask="make room")
            line.hang_up()


def _started(order: Order, place: Path) -> Line | None:
    log_file = Path(order.log_file)
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        with log_file.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "floodmark.spark.keeper"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=order.project,
            )
        assert process.stdin is not None  # noqa: S101 - a pipe, as asked for
        process.stdin.write(json.dumps(asdict(order)).encode())
        process.stdin.close()
    except OSError:
        return None
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        if (line := Line.to(place)) is not None:
            return line
        if process.poll() not in (None, 0):  # 0: another one has been quicker
            return None
        time.sleep(0.02)
    return None


# -- for `floodmark spark` ----------------------------------------------------------------------------------------


def residents(root: Path | None = None) -> Iterator[dict[str, Any]]:
    """What each of this user's keepers says of itself; those of one project where `root` is given."""
    for line in _lines(root):
        with suppress(OSError):
            line.say(ask="status")
            if (told := line.hear()) is not None:
                yield told
        line.hang_up()


def stop(root: Path | None = None, *, now: bool = False) -> list[int]:
    """For each that was asked to end, how many runs it still has; it waits for them unless `now`."""
    found = []
    for line in _lines(root):
        with suppress(OSError):
            line.say(ask="stop", now=now)
            if (told := line.hear()) is not None:
                found.append(int(told["clients"]))
        line.hang_up()
    return found


def _lines(root: Path | None) -> Iterator[Line]:
    prefix = "" if root is None else f"{project_key(root)}-"
    for place in sorted(rendezvous.folder().glob(f"{prefix}*{rendezvous.SUFFIX}")):
        if (line := Line.to(place, timeout=10)) is not None:
            yield line
