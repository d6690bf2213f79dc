"""The Java libraries that Spark needs beside its own: pinned, fetched once, then used offline."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import shutil
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from floodmark.errors import ConfigError

MAVEN_CENTRAL = "https://repo1.maven.org/maven2"

Fetch = Callable[[str, Path], None]
"""Writes what is at a URL into a file. Raises OSError, and may then leave the file half written."""


@dataclass(frozen=True)
class Jar:
    """A Maven coordinate and the checksum of what it must be, whoever serves it."""

    group: str
    artifact: str
    version: str
    sha256: str = ""
    """Empty for one that the user names: then it only has to be a whole jar."""

    @property
    def filename(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    def url(self, repository: str) -> str:
        folder = f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}"
        return f"{repository.rstrip('/')}/{folder}/{self.filename}"


_MARIADB = Jar(
    group="org.mariadb.jdbc",
    artifact="mariadb-java-client",
    version="3.5.11",
    sha256="42604178b9e57ec08ee0035079961516f086e455d0141f0b22c6eff29fb2fff4",
)

JARS: dict[str, tuple[Jar, ...]] = {
    "delta": (
        Jar(
            group="io.delta",
            artifact="delta-spark_4.1_2.13",
            version="4.4.0",
            sha256="75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
        ),
        Jar(
            group="io.delta",
            artifact="delta-storage",
            version="4.4.0",
            sha256="c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
        ),
    ),
    "iceberg": (
        Jar(
            group="org.apache.iceberg",
            artifact="iceberg-spark-runtime-4.1_2.13",
            version="1.12.0",
            sha256="3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
        ),
    ),
    "postgres": (
        Jar(
            group="org.postgresql",
            artifact="postgresql",
            version="42.7.14",
            sha256="73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c",
        ),
    ),
    # LGPL, unlike MySQL's own driver; it speaks to both.
    "mysql": (_MARIADB,),
    "mariadb": (_MARIADB,),
    "sqlite": (
        Jar(
            group="org.xerial",
            artifact="sqlite-jdbc",
            version="3.53.4.0",
            sha256="bcb1f51e36f940867e83342f9efbf5968ac44a6bef4d397bb4af7b17b45cd2fb",
        ),
    ),
}
"""By need. Delta's kernel jars are left out: MERGE, deletion vectors, append and history work without them."""


DRIVERS = ("postgres", "mysql", "sqlite")


def is_driver(path: str) -> bool:
    """Of a database, and one of ours: nothing else on the class path depends on it, or on its place there."""
    return Path(path).name in {jar.filename for need in DRIVERS for jar in JARS[need]}


def download(url: str, into: Path) -> None:
    # Any scheme the operator set (file: for a mounted mirror, too): the checksum is what is trusted, not the host.
    with urllib.request.urlopen(url, timeout=60) as response, into.open("wb") as file:  # noqa: S310
        shutil.copyfileobj(response, file)


def jars_for(
    needs: Iterable[str],
    *,
    cache: Path | None = None,
    fetch: Fetch = download,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Paths of the jars for these needs, in a stable order. Touches the network only for what the cache lacks.
    A need is a name in JARS, a Maven coordinate `group:artifact:version`, or the path of a jar.

    May be called again, and from several processes at once. Raises ConfigError.
    """
    folder = cache if cache is not None else cache_folder()
    wanted: dict[Jar | Path, None] = {}
    for need in needs:
        wanted.update(dict.fromkeys(_named(need)))
    return [jar if isinstance(jar, Path) else _cached(jar, folder, fetch, tell) for jar in wanted]


def _named(need: str) -> Sequence[Jar | Path]:
    if need in JARS:
        return JARS[need]
    if need.endswith(".jar"):
        if not Path(need).is_file():
            raise ConfigError(f"there is no jar {need}", value=need, hint="give its path, relative to the YAML file")
        return (Path(need),)
    if re.fullmatch(r"[\w.-]+:[\w.-]+:[\w.-]+", need):
        return (Jar(*need.split(":")),)
    raise ConfigError(f"no Java library is known for {need!r}", hint=f"known: {', '.join(sorted(JARS))}")


def cache_folder() -> Path:
    return _cache() / "jars"


def archives_folder() -> Path:
    return _cache() / "archives"


def _cache() -> Path:
    if own := os.environ.get("FLOODMARK_CACHE"):
        return Path(own).expanduser()
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "floodmark"
    return Path.home() / ".cache" / "floodmark"


def _cached(jar: Jar, folder: Path, fetch: Fetch, tell: Callable[[str], None]) -> Path:
    path = folder / jar.filename
    # Hashed on each use, 10 ms a jar: a file placed by hand or cut short by a full disk would fail deep inside Spark.
    if path.is_file() and _is_right(path, jar):
        return path
    url = jar.url(os.environ.get("FLOODMARK_MAVEN_URL") or MAVEN_CENTRAL)
    tell(f"Downloading {jar.filename}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Own temporary file, then rename: processes that fetch the same jar side by side never see half of it.
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{jar.filename}.")
        os.close(handle)
    except OSError as error:
        raise _unavailable(jar, path, url, f"{folder} can't be written: {error.strerror or error}") from error
    temporary = Path(name)
    try:
        _fetch_patiently(url, temporary, fetch)
        if not _is_right(temporary, jar):
            said = f"the checksum {_sha256(temporary)}, expected {jar.sha256}" if jar.sha256 else "no jar's content"
            raise _unavailable(jar, path, url, f"what came has {said}")
        temporary.chmod(0o644)
        temporary.replace(path)
    except (OSError, http.client.HTTPException) as error:
        raise _unavailable(jar, path, url, str(error) or type(error).__name__) from error
    finally:
        temporary.unlink(missing_ok=True)
    return path


def _fetch_patiently(url: str, into: Path, fetch: Fetch, attempts: int = 3) -> None:
    for attempt in range(1, attempts + 1):
        try:
            return fetch(url, into)
        except urllib.error.HTTPError as error:
            # The repository has answered: asking again changes nothing, unless it was the one in trouble.
            if error.code < 500 or attempt == attempts:
                raise
        except (OSError, http.client.HTTPException):
            if attempt == attempts:
                raise
        time.sleep(attempt * 0.5)
    return None


def _is_right(path: Path, jar: Jar) -> bool:
    # A jar's directory stands at its end: what was cut short has none.
    return _sha256(path) == jar.sha256 if jar.sha256 else zipfile.is_zipfile(path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unavailable(jar: Jar, path: Path, url: str, why: str) -> ConfigError:
    shown = re.sub(r"//[^/@]*@", "//", url)
    held = "what is in the cache has a wrong checksum" if path.is_file() else "it is not in the cache"
    return ConfigError(
        f"the Java library {jar.group}:{jar.artifact}:{jar.version} is not available: {held} ({path}), "
        f"and it could not be downloaded from {shown}: {why.replace(url, shown)}",
        value=jar.filename,
        hint=f"download {jar.filename} elsewhere and place it at {path}, "
        "or set FLOODMARK_MAVEN_URL to a Maven mirror that this machine can reach",
    )
