"""How to reach a Postgres, for psycopg and for JDBC, with the password kept out of every text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from pydantic import Field, SecretStr, model_validator

from floodmark.errors import MissingExtra, SourceError
from floodmark.model.spec import ConnectionOptions
from floodmark.sources.address import check_url, url_parts

if TYPE_CHECKING:
    import psycopg


_FINAL = re.compile(
    r"authentication|password|does not exist|pg_hba|not permitted|certificate|SSL|host name|not known", re.I
)
"""What trying again does not change."""


class PostgresConnection(ConnectionOptions):
    """A Postgres database, by URL or by its parts."""

    type: Literal["postgres"] = "postgres"
    url: SecretStr | None = Field(default=None, description="postgresql://user:password@host:5432/database?sslmode=…")
    host: str | None = Field(default=None, description="Host name.")
    port: int | None = Field(default=None, ge=1, le=65535, description="Port; 5432 when unset.")
    database: str | None = Field(default=None, description="Database name.")
    user: str | None = Field(default=None, description="Role to connect as; SELECT on the tables is enough.")
    password: SecretStr | None = Field(default=None, description="Its password, from `${A_VARIABLE}`.")
    connect_timeout: int = Field(default=10, ge=1, description="Seconds to wait for a connection.")

    @model_validator(mode="after")
    def _url_or_parts(self) -> PostgresConnection:
        if self.url is None and not (self.host and self.database):
            raise ValueError("set `url`, or `host` and `database`")
        if self.url is not None:
            check_url(self.url.get_secret_value(), ("postgresql", "postgres"))
        return self

    @property
    def parts(self) -> dict[str, str]:
        """Merged: a part that is set by itself wins over the same part of the URL."""
        found: dict[str, str] = {}
        if self.url is not None:
            found = url_parts(self.url.get_secret_value())
        own = {"host": self.host, "port": self.port, "database": self.database, "user": self.user}
        found |= {k: str(v) for k, v in own.items() if v is not None}
        if self.password is not None:
            found["password"] = self.password.get_secret_value()
        return {"host": "localhost", "port": "5432", **found}

    @property
    def secrets(self) -> tuple[str, ...]:
        password = self.parts.get("password")
        return (password,) if password else ()

    @property
    def where(self) -> str:
        """For messages."""
        parts = self.parts
        return f"{parts['host']}:{parts['port']}/{parts.get('database', '')}"

    @property
    def jdbc(self) -> tuple[str, dict[str, str]]:
        """Address and properties: user and password never go into the address, which Spark shows."""
        parts = self.parts
        address = f"jdbc:postgresql://{parts['host']}:{parts['port']}/{quote(parts.get('database', ''), safe='')}"
        wanted = {"driver": "org.postgresql.Driver", "ApplicationName": "floodmark"}
        names = {"user": "user", "password": "password", "sslmode": "sslmode", "sslrootcert": "sslrootcert"}
        return address, wanted | {ours: parts[theirs] for theirs, ours in names.items() if theirs in parts}

    def connect(self) -> psycopg.Connection[Any]:
        """Autocommit: the activity views freeze inside a transaction. Read-only, whatever the role may do."""
        try:
            import psycopg
        except ModuleNotFoundError as error:
            raise MissingExtra("psycopg is not installed", hint="pip install 'floodmark[postgres]'") from error
        parts = self.parts
        parts["dbname"] = parts.pop("database", "")
        try:
            db = psycopg.connect(
                autocommit=True,
                connect_timeout=self.connect_timeout,
                application_name="floodmark",
                **parts,  # type: ignore[arg-type]
            )
        except psycopg.OperationalError as error:
            reason = _reason(error)
            raise SourceError(
                f"can't connect to Postgres at {self.where}: {reason}", transient=not _FINAL.search(reason)
            ) from error
        db.read_only = True
        # psycopg reads no other style than this one; a server may have been set to another.
        db.execute("SET datestyle = 'ISO'; SET timezone = 'UTC'")
        return db


def _reason(error: Exception) -> str:
    """libpq tells each attempted address on a line of its own: the first is enough."""
    first = str(error).strip().splitlines()[0]
    return first.split("failed: ", 1)[-1].removeprefix("FATAL:").strip()


def may_pass(error: Exception) -> bool:
    """A cut connection, a deadlock, a time-out, a server that is shutting down."""
    import psycopg

    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
