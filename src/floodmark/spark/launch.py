"""Starts the JVM that Spark lives in, and waits until it can be spoken to.

Directly, where Spark runs in this very process' place: `spark-submit` would start one JVM to find out how to start the
other. Needs nothing but the standard library, so that the JVM is on its way before PySpark is imported.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from floodmark.spark.jars import is_driver

MAIN_CLASS = "org.apache.spark.api.python.PythonGatewayServer"

AHEAD = Path(__file__).parent / "ahead"
"""Which classes a small load needs, in that order, and who loads them; `scripts/write_classes.py` makes the list."""

OFTEN = ("scala-library", "spark-catalyst", "spark-sql_", "spark-sql-api", "spark-core", "spark-common-utils")
"""Jars that most classes are in. Java asks one after the other for each class, and there are some hundreds."""

OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
"""What Spark's launcher opens to it as well. It also adds a module that only machine learning uses, and that small
Javas lack."""

OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--enable-native-access=ALL-UNNAMED",
)

UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
"""A third of what loading a class takes is to prove its code sound. An archive holds classes that were; without one
those of Spark and Delta are taken as they were published, and as their checksums say that they arrived."""

ONLY_SUBMIT = ("spark.jars", "spark.files", "spark.archives", "spark.submit.", "spark.kerberos.")
ONLY_SUBMIT_DRIVER = ("spark.driver.extraLibraryPath", "spark.driver.defaultJavaOptions", "spark.driver.libraryPath")
ONLY_SUBMIT_ENVIRONMENT = ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")

STEP = 0.01
"""Seconds between two looks for the JVM's address."""


@dataclass(frozen=True)
class Command:
    """How to start it: also what tells two JVMs apart that can't stand in for each other."""

    java: str
    options: tuple[str, ...]
    class_path: tuple[str, ...]
    drivers: tuple[str, ...] = ()
    """Jars at the end of the class path: an archive that was made without them still fits."""

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Command:
        return cls(told["java"], *(tuple(told[name]) for name in ("options", "class_path", "drivers")))

    def words(self, *more: str, ahead: bool = False) -> list[str]:
        """`ahead` has another thread load the classes that are going to be needed."""
        opened = [f"--add-opens={name}=ALL-UNNAMED" for name in OPENED]
        path = os.pathsep.join((*self.class_path, *self.drivers, *([str(AHEAD / "ahead.jar")] if ahead else [])))
        start = ("floodmark.Ahead", str(AHEAD / "classes.gz"), MAIN_CLASS) if ahead else (MAIN_CLASS,)
        trusted = UNVERIFIED if ahead else ()
        return [self.java, *OPTIONS, *opened, *trusted, *self.options, *more, "-cp", path, *start]


def spark_home() -> Path | None:
    if own := os.environ.get("SPARK_HOME"):
        return Path(own)
    found = find_spec("pyspark")
    places = None if found is None else found.submodule_search_locations
    return Path(places[0]) if places else None


def direct_command(java: Path, settings: Mapping[str, str]) -> Command | None:
    """None where something is set that only `spark-submit` knows what to do with."""
    home = spark_home()
    if home is None or not (home / "jars").is_dir() or any(name in os.environ for name in ONLY_SUBMIT_ENVIRONMENT):
        return None
    if any((home / "conf" / name).exists() for name in ("spark-defaults.conf", "spark-env.sh", "log4j2.properties")):
        return None
    if any(key.startswith(ONLY_SUBMIT) or key in ONLY_SUBMIT_DRIVER for key in settings):
        return None
    ours = [part for part in settings.get("spark.driver.extraClassPath", "").split(os.pathsep) if part]
    sparks = [str(path) for path in sorted((home / "jars").glob("*.jar"), key=_place)]
    memory = settings.get("spark.driver.memory", "1g")
    options = (f"-Xmx{memory}", *shlex.split(settings.get("spark.driver.extraJavaOptions", "")))
    drivers = [path for path in ours if is_driver(path)]
    first = [path for path in ours if path not in drivers]
    return Command(str(java), options, (*first, *sparks), tuple(drivers))


def _place(jar: Path) -> tuple[bool, str]:
    return not jar.name.startswith(OFTEN), jar.name


@dataclass(frozen=True)
class Address:
    """Where the JVM listens, on this machine only, and the word that it wants to hear."""

    port: int
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Jvm:
    process: subprocess.Popen[bytes]
    folder: Path

    def address(self) -> Address | None:
        """None while it is still starting. Raises RuntimeError when it has ended instead."""
        ended = self.process.poll() is not None
        try:
            said = (self.folder / "address").read_bytes()
        except FileNotFoundError:
            if ended:
                raise RuntimeError(f"Java ended with exit code {self.process.returncode}") from None
            return None
        port, length = struct.unpack_from(">ii", said)
        return Address(port, said[8 : 8 + length].decode())

    def wait_for_address(self) -> Address:
        while (address := self.address()) is None:
            time.sleep(STEP)
        return address

    def end(self, patience: float = 15) -> None:
        """It ends itself when its standard input does, and clears its temporary files."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        for give_up in (self.process.terminate, self.process.kill):
            try:
                self.process.wait(timeout=patience)
                break
            except subprocess.TimeoutExpired:
                give_up()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def launch(words: Sequence[str], log_file: Path) -> Jvm:
    """On its way when this returns. Its words go to the log, as its output rather than as ours for a while: a progress
    line that is being drawn meanwhile must not end up there."""
    folder = Path(tempfile.mkdtemp(prefix="floodmark-jvm-"))
    told = {"_PYSPARK_DRIVER_CONN_INFO_PATH": str(folder / "address"), "SPARK_CONNECT_MODE": "0"}
    with log_file.open("ab") as log:
        process = subprocess.Popen(
            words,
            env={**os.environ, **told},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            preexec_fn=_deaf_to_ctrl_c,
        )
    return Jvm(process, folder)


def _deaf_to_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
