"""A database server: how to reach it, how hard a run may lean on it, and nothing secret in any text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import ClassVar, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import Field, SecretStr, model_validator

from floodmark.model.duration import Duration
from floodmark.model.spec import ConnectionOptions


class ServerOptions(ConnectionOptions):
    """The same for every server; each source says the limits in its own words."""

    schemes: ClassVar[tuple[str, ...]]
    usual_port: ClassVar[str]

    url: SecretStr | None = Field(default=None, description="scheme://user:password@host:port/database")
    host: str | None = Field(default=None, description="Host name.")
    port: int | None = Field(default=None, ge=1, le=65535, description="Port; the database's usual one when unset.")
    database: str | None = Field(default=None, description="Database name.")
    user: str | None = Field(default=None, description="Who to connect as; SELECT on the tables is enough.")
    password: SecretStr | None = Field(default=None, description="The user's password, from `${A_VARIABLE}`.")
    connect_timeout: int = Field(default=10, ge=1, description="Seconds to wait for a connection.")
    application_name: str = Field(default="floodmark", description="What the server shows our sessions as.")
    statement_timeout: Duration | None = Field(
        default=None, description="The server ends a statement of ours that takes longer. No limit when unset."
    )
    lock_timeout: Duration = Field(
        default=timedelta(seconds=10), description="How long a statement of ours waits behind somebody's lock."
    )
    max_connections: int = Field(
        default=8, ge=3, le=1000, description="Sessions that one run may have open at once, all its readers included."
    )

    @model_validator(mode="after")
    def _url_or_parts(self) -> Self:
        if self.url is not None:
            _check_url(self.url.get_secret_value(), self.schemes)
        if not self.parts.get("database") and (self.url is None or self.needs_database):
            raise ValueError("set `url` with a database in it, or `host` and `database`")
        return self

    @property
    def needs_database(self) -> bool:
        """Whether a url must name it; some servers have one for each user."""
        return True

    @property
    def parts(self) -> dict[str, str]:
        """Merged: a part that is set by itself wins over the same part of the URL."""
        found = {} if self.url is None else _url_parts(self.url.get_secret_value())
        own = {"host": self.host, "port": self.port, "database": self.database, "user": self.user}
        found |= {k: str(v) for k, v in own.items() if v is not None}
        if self.password is not None:
            found["password"] = self.password.get_secret_value()
        return {"host": "localhost", "port": self.usual_port, **found}

    @property
    def secrets(self) -> tuple[str, ...]:
        password = self.parts.get("password")
        return (password,) if password else ()

    @property
    def where(self) -> str:
        """For messages."""
        parts = self.parts
        return f"{parts['host']}:{parts['port']}/{parts.get('database', '')}"


def milliseconds(limit: timedelta) -> int:
    return max(1, int(limit.total_seconds() * 1000))


def _check_url(text: str, schemes: Sequence[str]) -> None:
    """Nothing of a url that can't be split is ever shown: what looks like its host may be half of the password."""
    if text.partition("://")[0] not in schemes:
        raise ValueError(f"the url must begin with {schemes[0]}://")
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise ValueError("the url's port is not a number, or its password is not percent-encoded") from None
    if port == 0 or "@" in url.path + url.query + url.fragment or (url.username or "").count("@"):
        raise ValueError("the url can't be split: percent-encode the password (@ is %40, / is %2F, : is %3A)")


def _url_parts(text: str) -> dict[str, str]:
    """Host, port, database, user and password where the url has them, beside its own parameters."""
    url = urlsplit(text)
    named = {
        "host": url.hostname,
        "port": str(url.port) if url.port else None,
        "database": unquote(url.path.lstrip("/")),
        "user": unquote(url.username or ""),
        "password": unquote(url.password or ""),
    }
    return dict(parse_qsl(url.query)) | {k: v for k, v in named.items() if v}
