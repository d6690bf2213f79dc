"""Classes that Spark's JVM finds loaded and checked when it starts, in an archive of its own for each Java and class
path (drivers of databases apart): half of the time of a cold start goes into loading classes.

A JVM that finds no archive writes down which classes it loads; once it has ended, a process in the background makes the
archive from that list and tries it. Java itself ignores an archive that does not fit.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from floodmark.spark.launch import Command, Jvm, launch

DAY = 24 * 3600
UNUSED = 30 * DAY
"""Seconds after which an archive that no JVM has used is removed: each takes about 200 MB."""
AGAIN = 7 * DAY
"""Seconds until one that could not be made is tried again."""
QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")


@dataclass(frozen=True)
class Archive:
    """Of one Java and one class path."""

    folder: str
    command: Command

    @property
    def key(self) -> str:
        """Anything that Java compares is in it, so that a stale archive is simply another one."""
        parts = [self.command.java, *self._collector, *self.command.class_path]
        stamps = [[p, *_stamp(p)] if Path(p).is_absolute() else [p] for p in parts]
        return hashlib.sha256(json.dumps(stamps).encode()).hexdigest()[:20]

    @property
    def _collector(self) -> list[str]:
        """An archive holds objects as one collector keeps them."""
        return [option for option in self.command.options if "GC" in option]

    def path(self, kind: str) -> Path:
        return Path(self.folder) / f"{self.key}.{kind}"

    def options(self) -> tuple[str, ...]:
        """For the JVM that is about to start: to use it, or to write down what it should hold."""
        ready = self.path("jsa")
        if self._is_whole():
            with contextlib.suppress(OSError):
                os.utime(ready)  # for its date of last use
            return (f"-XX:SharedArchiveFile={ready}", "-Xshare:auto", *QUIET)
        if _is_recent(self.path("failed")):
            return ()
        try:
            ready.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return ()  # a cache that can't be written is none
        return (f"-XX:DumpLoadedClassList={self._list_of(os.getpid())}", *QUIET)

    def _is_whole(self) -> bool:
        """Java checks that an archive fits, not that all of it is there: one that was cut short ends the JVM."""
        try:
            return self.path("jsa").stat().st_size == int(self.path("size").read_text())
        except (OSError, ValueError):
            return False

    def _list_of(self, pid: int) -> Path:
        return self.path(f"{pid}.classes")

    def make_in_background(self) -> None:
        """From what the JVM that this process started, and that has ended, wrote down."""
        classes = self._list_of(os.getpid())
        if self._is_whole() or not classes.exists():
            return
        order = {"folder": self.folder, "command": asdict(self.command), "classes": str(classes)}
        process = subprocess.Popen(
            [sys.executable, "-m", "floodmark.spark.archive"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=self.folder,
        )
        assert process.stdin is not None  # noqa: S101 - a pipe, as asked for
        process.stdin.write(json.dumps(order).encode())
        process.stdin.close()

    def make(self, classes: Path) -> bool:
        """Made aside and tried before it takes its place. False when somebody else makes it, or it can't be made."""
        aside = self.path(f"{os.getpid()}.new")
        with _alone(self.path("lock")) as alone:
            if not alone or self._is_whole():
                return False
            java, path = self.command.java, os.pathsep.join(self.command.class_path)
            shared = [*self._collector, f"-XX:SharedArchiveFile={aside}", "-cp", path]
            dump = [java, *QUIET, "-Xshare:dump", f"-XX:SharedClassListFile={classes}", *shared]
            made = subprocess.run(dump, capture_output=True, check=False)
            tried = subprocess.run([java, "-Xshare:on", *shared, "-version"], capture_output=True, check=False)
            if made.returncode or tried.returncode:
                aside.unlink(missing_ok=True)
                self.path("failed").write_bytes(made.stderr + tried.stderr)
                return False
            self.path("size").write_text(str(aside.stat().st_size))
            aside.rename(self.path("jsa"))
            self.path("failed").unlink(missing_ok=True)
            self._sweep()
            return True

    def _sweep(self) -> None:
        """Archives of a Java or Spark that is gone, and lists that nobody made anything of."""
        for file in Path(self.folder).iterdir():
            limit = UNUSED if file.suffix == ".jsa" else DAY
            if file.suffix in (".jsa", ".classes", ".new") and time.time() - file.stat().st_mtime > limit:
                file.unlink(missing_ok=True)


def launched(command: Command, log_file: Path, archive: Archive | None) -> Jvm:
    """With its classes from the archive, where there is one; else another core loads them ahead."""
    options = () if archive is None else archive.options()
    ready = any(option.startswith("-XX:SharedArchiveFile") for option in options)
    return launch(command.words(*options, ahead=not ready and (os.cpu_count() or 1) > 1), log_file)


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = Path(path).stat()
    except OSError:
        return (0, 0)
    return (found.st_size, found.st_mtime_ns)


def _is_recent(path: Path) -> bool:
    return path.exists() and time.time() - path.stat().st_mtime < AGAIN


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[bool]:
    with path.open("w") as file:
        yield _locked(file)


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def main() -> None:
    os.nice(19)
    order = json.load(sys.stdin)
    classes = Path(order["classes"])
    try:
        Archive(order["folder"], Command.from_dict(order["command"])).make(classes)
    finally:
        classes.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
