"""A warehouse of Iceberg tables and the catalog that knows them."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from floodmark.connections.names import split_name
from floodmark.errors import Place
from floodmark.model.options import Options
from floodmark.model.passwords import passwords_in
from floodmark.model.spec import ConnectionOptions

SECRET = re.compile(r"secret|password|token|credential|access.?key", re.IGNORECASE)
"""Names of properties whose values are never shown."""

NO_RENAME = ("s3", "s3a", "s3n", "gs", "oss", "cos")
"""Object stores that can't move a file to its place, or fail if there is one: what a catalog of files lives by."""

DRIVERS = {"sqlite": "sqlite", "postgresql": "postgres"}
"""Databases that can hold a catalog, and the need that brings their driver."""


class CatalogOptions(Options):
    """Who says which state of a table is the newest."""

    type: Literal["hadoop", "jdbc", "rest"] = Field(
        default="hadoop", description="Files beside the tables, tables in a database, or a server."
    )
    uri: SecretStr | None = Field(
        default=None,
        description="Of the database, postgresql://user:password@host/name or sqlite:///catalog.db, or of the server.",
    )
    name: str = Field(
        default="floodmark",
        pattern=r"^\w+$",
        description="What the catalog is called inside its database, by everyone who uses it.",
    )
    properties: dict[str, str | int | bool] = Field(
        default_factory=dict, description="Iceberg's own, e.g. `token`, `credential`, `io-impl`, `s3.endpoint`."
    )


class IcebergConnection(ConnectionOptions):
    """A warehouse of Iceberg tables."""

    type: Literal["iceberg"] = "iceberg"
    path: str | None = Field(
        default=None,
        description="The warehouse: a folder or object store address; a relative one starts at the YAML file. "
        "A server may have one of its own.",
    )
    catalog: CatalogOptions = Field(default=CatalogOptions(), description="Files beside the tables when unset.")
    namespace: str = Field(default="default", description="Where tables are whose name says nothing of it.")
    jars: tuple[str, ...] = Field(
        default=(),
        description="More Java libraries, for object stores: paths, relative to the YAML file, or Maven coordinates.",
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        kind, uri = self.catalog.type, self.catalog.uri
        if kind != "hadoop" and uri is None:
            raise ValueError(f"a {kind} catalog needs `catalog.uri`")
        if kind == "hadoop" and uri is not None:
            raise ValueError("`catalog.uri` is for a catalog of type jdbc or rest")
        if kind != "rest" and not self.path:
            raise ValueError("set `path`: the folder or address that the tables are below")
        if kind == "jdbc" and self.database not in DRIVERS:
            raise ValueError(f"`catalog.uri` of a jdbc catalog begins with {' or '.join(f'{d}://' for d in DRIVERS)}")
        scheme = (self.path or "").partition("://")[0] if "://" in (self.path or "") else ""
        if kind == "hadoop" and scheme in NO_RENAME:
            raise ValueError(
                f"a catalog of files can't be on {scheme}://, where two writers would overwrite each other: "
                "use `catalog: {type: jdbc, uri: …}` or `{type: rest, uri: …}`"
            )
        return self

    @property
    def database(self) -> str:
        """Of a jdbc catalog: the scheme of its address."""
        return "" if self.catalog.uri is None else self.catalog.uri.get_secret_value().partition("://")[0]

    def table_parts(self, name: str, declared_at: Place | None) -> tuple[str, ...]:
        """Namespace and table."""
        parts = split_name(name, declared_at)
        return tuple(parts if len(parts) > 1 else [*split_name(self.namespace), *parts])

    @property
    def secrets(self) -> tuple[str, ...]:
        uri = "" if self.catalog.uri is None else self.catalog.uri.get_secret_value()
        own = (str(value) for name, value in self.catalog.properties.items() if SECRET.search(name))
        return (*passwords_in(uri), *own)

    @property
    def java(self) -> tuple[str, ...]:
        driver = (DRIVERS[self.database],) if self.catalog.type == "jdbc" else ()
        return ("iceberg", *driver, *self.jars)
