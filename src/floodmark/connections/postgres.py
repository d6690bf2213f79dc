"""How to reach a Postgres, for psycopg and for JDBC, with the password kept out of every text."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from pydantic import Field, SecretStr

from floodmark.connections.server import ServerOptions, milliseconds
from floodmark.errors import MissingExtra, SourceError
from floodmark.model.duration import Duration

if TYPE_CHECKING:
    import psycopg


_FINAL = re.compile(
    r"authentication|password|does not exist|pg_hba|not permitted|certificate|SSL|host name|not known", re.I
)
"""What trying again does not change."""


READ_ONLY = "SET default_transaction_read_only = on"


class PostgresConnection(ServerOptions):
    """A Postgres database, by URL or by its parts."""

    schemes = ("postgresql", "postgres")
    usual_port = "5432"

    type: Literal["postgres"] = "postgres"
    snapshot_age: Duration = Field(
        default=timedelta(hours=1),
        description="How long a slice may hold its snapshot, which keeps vacuum from its work.",
    )

    fence_url: SecretStr | None = Field(
        default=None,
        description="The primary's own address, where `url` leads to a replica or a proxy: open transactions are "
        "looked for there.",
    )

    @property
    def of_fence(self) -> PostgresConnection:
        return self.model_copy(update={"url": self.fence_url, "host": None, "port": None, "fence_url": None})

    @property
    def secrets(self) -> tuple[str, ...]:
        return super().secrets + (() if self.fence_url is None else self.of_fence.secrets)

    @property
    def needs_database(self) -> bool:
        return False

    @property
    def jdbc(self) -> tuple[str, dict[str, str]]:
        """Address and properties: user and password never go into the address, which Spark shows."""
        parts = self.parts
        address = f"jdbc:postgresql://{parts['host']}:{parts['port']}/{quote(parts.get('database', ''), safe='')}"
        wanted = {"driver": "org.postgresql.Driver", "ApplicationName": self.application_name}
        names = {"user": "user", "password": "password", "sslmode": "sslmode", "sslrootcert": "sslrootcert"}
        return address, wanted | {ours: parts[theirs] for theirs, ours in names.items() if theirs in parts}

    @property
    def keywords(self) -> dict[str, Any]:
        """What psycopg takes, wherever it connects from."""
        parts = self.parts
        parts["dbname"] = parts.pop("database", "")
        return {**parts, "connect_timeout": self.connect_timeout, "application_name": self.application_name}

    def connect(self, *, writes: bool = False) -> psycopg.Connection[Any]:
        """Autocommit: the activity views freeze inside a transaction. Read-only unless it `writes`, whatever the role
        may do."""
        driver()  # says what to install
        import psycopg

        settings = ["SET datestyle = 'ISO'", "SET timezone = 'UTC'", self.limits, *(() if writes else (READ_ONLY,))]
        try:
            db = psycopg.connect(autocommit=True, **self.keywords)
            # psycopg reads no other style than this one; a server may have been set to another.
            db.execute("; ".join(settings).encode())
        except psycopg.OperationalError as error:
            reason = _reason(error)
            raise SourceError(
                f"can't connect to Postgres at {self.where}: {reason}", transient=not _FINAL.search(reason)
            ) from error
        return db

    @property
    def limits(self) -> str:
        """For every session of ours, whoever opens it."""
        statement = 0 if self.statement_timeout is None else milliseconds(self.statement_timeout)
        return (
            f"SET statement_timeout = {statement}; SET lock_timeout = {milliseconds(self.lock_timeout)}; "
            f"SET idle_in_transaction_session_timeout = {milliseconds(self.snapshot_age)}"
        )


def driver() -> Any:
    """psycopg, wherever it is needed first."""
    try:
        import psycopg
    except ModuleNotFoundError as error:
        raise MissingExtra("psycopg is not installed", hint="pip install 'floodmark[postgres]'") from error
    return psycopg


def _reason(error: Exception) -> str:
    """libpq tells each attempted address on a line of its own: the first is enough."""
    first = str(error).strip().splitlines()[0]
    return first.split("failed: ", 1)[-1].removeprefix("FATAL:").strip()


def may_pass(error: Exception) -> bool:
    """A cut connection, a deadlock, a time-out, a server that is shutting down."""
    psycopg = driver()
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
