"""The ways to a JVM that Spark can live in: one that a keeper holds warm, one that this process starts directly, or one
that `spark-submit` starts. Each begins at once, and is waited for only when its gateway is asked for."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from floodmark.spark.archive import Archive, launched
from floodmark.spark.launch import Address, Command, Jvm
from floodmark.spark.resident import Warm, attach

SECRET = re.compile(r"(?i)secret|password|token|access[.]?key")
TRIES = 3
"""A keeper may end at the very moment that a run comes to it."""


class Entrance(Protocol):
    def gateway(self) -> tuple[Any, bool]:
        """py4j's, and whether a Spark context is there already. Raises RuntimeError when there is no JVM after all."""

    def entered(self) -> None:
        """The context is there."""

    def leave(self, gateway: Any, *, cleanly: bool) -> None:
        """Ends the JVM if it is this process' own. `gateway` is None if there never was one."""


@dataclass
class OwnJvm:
    """Started directly by this process, and ended by it."""

    command: Command
    log_file: Path
    archive: Archive | None
    jvm: Jvm = field(init=False)

    def __post_init__(self) -> None:
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        self.jvm = launched(self.command, self.log_file, self.archive)

    def gateway(self) -> tuple[Any, bool]:
        gateway = gateway_at(self.jvm.wait_for_address())
        gateway.proc = self.jvm.process
        return gateway, False

    def entered(self) -> None:
        """Nobody waits for it."""

    def leave(self, gateway: Any, *, cleanly: bool) -> None:
        if gateway is not None:
            with suppress(Exception):
                gateway.shutdown()
        self.jvm.end()
        if cleanly and self.archive is not None:
            self.archive.make_in_background()


@dataclass
class KeptJvm:
    """Somebody else's to keep: entered and left."""

    root: Path
    command: Command
    settings: Mapping[str, str]
    log_file: Path
    idle: float
    archives: Path | None
    _warm: Warm | None = None

    def begin(self) -> bool:
        """False where there is no keeper and none can be started."""
        self._warm = attach(self.root, self.command, self.settings, self.log_file, self.idle, self.archives)
        return self._warm is not None

    def gateway(self) -> tuple[Any, bool]:
        for tried in range(1, TRIES + 1):
            if self._warm is None:
                break
            try:
                address, warm = self._warm.address()
            except RuntimeError:
                self._warm.leave(cleanly=True)
                if tried == TRIES:
                    raise
                self.begin()
            else:
                return gateway_at(address), warm
        raise RuntimeError("there is no keeper of a warm Spark, and none starts")

    def entered(self) -> None:
        assert self._warm is not None  # noqa: S101 - its gateway was asked for
        self._warm.attached()

    def leave(self, gateway: Any, *, cleanly: bool) -> None:
        if self._warm is not None:
            self._warm.leave(cleanly=cleanly)
        if gateway is not None:
            with suppress(Exception):
                gateway.close()


@dataclass
class Submitted:
    """Through Spark's own launcher, which knows clusters, `spark-defaults.conf` and all that."""

    settings: Mapping[str, str]
    log_file: Path

    def gateway(self) -> tuple[Any, bool]:
        from pyspark import SparkConf
        from pyspark.java_gateway import launch_gateway

        # Every user of this machine can read a command line: secrets go over the gateway, with the context's settings.
        shown = [(key, value) for key, value in self.settings.items() if not SECRET.search(key)]
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as log:
            visible = SparkConf(loadDefaults=False).setAll(shown)
            return launch_gateway(visible, {"stdout": log, "stderr": log}), False  # type: ignore[no-untyped-call]

    def entered(self) -> None:
        """Nobody waits for it."""

    def leave(self, gateway: Any, *, cleanly: bool) -> None:  # noqa: ARG002 - ended either way
        if gateway is None:
            return
        with suppress(Exception):
            gateway.shutdown()
        process: subprocess.Popen[bytes] = gateway.proc
        Jvm(process, Path(os.devnull)).end()


def gateway_at(address: Address) -> Any:
    """PySpark finds a gateway that it is given through its environment."""
    from pyspark.java_gateway import launch_gateway

    given = {"PYSPARK_GATEWAY_PORT": str(address.port), "PYSPARK_GATEWAY_SECRET": address.secret}
    os.environ.update(given)
    try:
        return launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name in given:
            os.environ.pop(name, None)
