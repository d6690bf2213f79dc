"""One catalog as both sides know it: Spark, which writes, and this process, which reads a table's metadata without."""

from __future__ import annotations

import gzip
import json
import re
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from floodmark.connections.iceberg import IcebergConnection
from floodmark.errors import ConfigError, MissingExtra, TargetError
from floodmark.model.names import spark_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSION = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}
"""As SQLAlchemy names them."""

Metadata = dict[str, Any]
"""A table's metadata file, as Iceberg's specification has it."""


class Catalog:
    def __init__(self, connection: IcebergConnection, root: Path) -> None:
        self._connection, self._root = connection, root
        self._kind = connection.catalog.type
        path = connection.path
        # A server has its own name for it.
        here = path is not None and "://" not in path and self._kind != "rest"
        self.warehouse = str((root / str(path)).resolve()) if here else path
        self.folder = Path(str(self.warehouse)) if here else None
        """Of the tables, where they are on this machine."""

    @property
    def place(self) -> str:
        """The same for everyone who uses it."""
        uri = self._connection.catalog.uri
        if uri is None:
            return str(self.warehouse)
        url = urlsplit(uri.get_secret_value())
        database = (
            self._sqlite if self._connection.database == "sqlite" else f"{url.netloc.rpartition('@')[2]}{url.path}"
        )
        return f"{database}/{self._connection.catalog.name}" if self._kind == "jdbc" else f"{database}/{self.warehouse}"

    # -- Spark ----------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """A database's catalog is kept under the name that Spark has for it; all others get one of their own."""
        if self._kind == "jdbc":
            return self._connection.catalog.name
        told = json.dumps(self.settings, sort_keys=True)
        return f"floodmark_{sha256(told.encode()).hexdigest()[:10]}"

    @property
    def settings(self) -> dict[str, str]:
        """For Spark, below the catalog's name."""
        # Others commit between two statements of ours: nothing that was read before counts.
        own = {"type": self._kind, "cache-enabled": "false"}
        if self.warehouse is not None:
            own["warehouse"] = self.warehouse
        uri = self._connection.catalog.uri
        if self._kind == "rest" and uri is not None:
            own["uri"] = uri.get_secret_value()
        if self._kind == "jdbc":
            # Nobody closes a session's catalog: one connection is enough to be left open.
            own |= {"jdbc.schema-version": "V1", "clients": "1", **self._jdbc}
        return own | self._given

    def attach(self, spark: SparkSession) -> None:
        """Makes it known to the session."""
        if EXTENSION not in (spark.conf.get("spark.sql.extensions", "") or ""):
            raise ConfigError(
                "this Spark was started without Iceberg's extension",
                hint=f"start it with spark.sql.extensions={EXTENSION} and Iceberg's runtime on its class path, "
                "or let Floodmark start one",
            )
        prefix = f"spark.sql.catalog.{self.name}"
        wanted = {f"{prefix}.{key}": value for key, value in self.settings.items()}
        if spark.conf.get(prefix, None) is not None and any(spark.conf.get(k, None) != v for k, v in wanted.items()):
            raise ConfigError(
                f"two catalogs are called {self.name}",
                hint="give each an own `catalog.name`: it is what Spark and the catalog's database know it by",
            )
        for key, value in {prefix: "org.apache.iceberg.spark.SparkCatalog", **wanted}.items():
            spark.conf.set(key, value)

    def sql_name(self, *parts: str) -> str:
        return ".".join(map(spark_name, (self.name, *parts)))

    @property
    def _given(self) -> dict[str, str]:
        given = self._connection.catalog.properties
        return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in given.items()}

    @property
    def _jdbc(self) -> dict[str, str]:
        if self._connection.database == "sqlite":
            # SQLite has one writer: others wait for it.
            return {"uri": f"jdbc:sqlite:{self._sqlite}?busy_timeout=10000"}
        assert self._connection.catalog.uri is not None  # noqa: S101 - the options are checked
        url = urlsplit(self._connection.catalog.uri.get_secret_value())
        query = f"?{url.query}" if url.query else ""
        own = {"uri": f"jdbc:postgresql://{url.netloc.rpartition('@')[2]}{url.path}{query}"}
        named = {"jdbc.user": url.username, "jdbc.password": url.password}
        return own | {key: unquote(value) for key, value in named.items() if value}

    @property
    def _sqlite(self) -> Path:
        assert self._connection.catalog.uri is not None  # noqa: S101 - the options are checked
        path = self._connection.catalog.uri.get_secret_value().partition(":///")[2]
        return (self._root / path).resolve()

    # -- without Spark --------------------------------------------------------------------------------------------

    def metadata(self, namespace: tuple[str, ...], table: str) -> Metadata | None:
        """Of the table as it is now; None when there is none. Raises TargetError."""
        try:
            if self._kind != "hadoop":
                return self._of_catalog((*namespace, table))
            if self.folder is not None:
                return _of_folder(self.folder.joinpath(*namespace, table, "metadata"))
            return self._of_store("/".join([str(self.warehouse).rstrip("/"), *namespace, table, "metadata"]))
        except ModuleNotFoundError as error:
            raise MissingExtra(f"{error.name} is not installed", hint="pip install 'floodmark[iceberg]'") from error
        except (OSError, ValueError) as error:
            raise TargetError(f"can't read the metadata of {'.'.join((*namespace, table))}: {error}") from error

    def _of_catalog(self, identifier: tuple[str, ...]) -> Metadata | None:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        if self._connection.database == "sqlite" and not self._sqlite.exists():
            if not self._sqlite.parent.is_dir():
                raise TargetError(f"there is no folder {self._sqlite.parent} for the catalog")
            return None  # asking would make it
        try:
            with load_catalog(self.name, **self._for_pyiceberg()) as catalog:
                table = catalog.load_table(identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except Exception as error:
            if re.search(r"no such table|UndefinedTable", str(error)):
                return None  # a database that no catalog is in yet
            # What the system said, which libraries for HTTP wrap in three layers of their own.
            said = re.search(r"\[Errno -?\d+\] ([\w ]+)", str(error))
            why = said[1] if said else str(error).strip().partition("\n")[0] or type(error).__name__
            raise TargetError(
                f"the catalog can't be asked: {why}",
                transient=said is not None or isinstance(error, ConnectionError),
                hint="`catalog.uri` says where it is",
            ) from error
        found: Metadata = json.loads(table.metadata.model_dump_json())
        return found

    def _for_pyiceberg(self) -> dict[str, str]:
        own = self._given | ({} if self.warehouse is None else {"warehouse": self.warehouse})
        uri = self._connection.catalog.uri
        assert uri is not None  # noqa: S101 - the options are checked
        if self._kind == "rest":
            return own | {"type": "rest", "uri": uri.get_secret_value()}
        scheme, _, rest = uri.get_secret_value().partition("://")
        address = quote(str(self._sqlite), safe="/") if scheme == "sqlite" else rest
        slashes = ":///" if scheme == "sqlite" else "://"
        return own | {"type": "sql", "uri": f"{DRIVERS[scheme]}{slashes}{address}", "init_catalog_tables": "false"}

    def _of_store(self, folder: str) -> Metadata | None:
        from pyiceberg.io import load_file_io

        files = load_file_io(self._given, folder)

        def read(name: str) -> bytes | None:
            found = files.new_input(f"{folder}/{name}")
            if not found.exists():
                return None
            with found.open() as stream:
                return stream.read()

        hint = read("version-hint.text")
        return None if hint is None else _newest(int(hint), read)


def _of_folder(folder: Path) -> Metadata | None:
    def read(name: str) -> bytes | None:
        try:
            return (folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    hint = read("version-hint.text")
    if hint is None:
        versions = [int(found[1]) for path in folder.glob("v*.metadata.json") if (found := _VERSION.match(path.name))]
        return _newest(max(versions), read) if versions else None
    return _newest(int(hint), read)


_VERSION = re.compile(r"v(\d+)(?:\.gz)?\.metadata\.json$")


def _newest(version: int, read: Any) -> Metadata | None:
    """The hint is written after the metadata that it speaks of, so there may be more."""
    newest = None
    while (found := _parsed(version, read)) is not None:
        newest, version = found, version + 1
    return newest


def _parsed(version: int, read: Any) -> Metadata | None:
    if (plain := read(f"v{version}.metadata.json")) is not None:
        found: Metadata = json.loads(plain)
        return found
    if (packed := read(f"v{version}.gz.metadata.json")) is not None:
        unpacked: Metadata = json.loads(gzip.decompress(packed))
        return unpacked
    return None
