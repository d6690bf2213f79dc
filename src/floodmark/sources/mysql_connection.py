"""How to reach a MySQL or MariaDB, for pymysql and for JDBC, with the password kept out of every text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, SecretStr, model_validator

from floodmark.errors import MissingExtra, SourceError
from floodmark.model.spec import ConnectionOptions
from floodmark.sources.address import check_url, url_parts

if TYPE_CHECKING:
    import pymysql

SESSION = "SET time_zone = '+00:00'"
"""TIMESTAMP columns are shown in the session's zone: every session of ours has the same one."""

_PASSING = {1040, 1053, 1158, 1159, 1160, 1161, 1205, 1213, 1317, 1969, 2002, 2003, 2006, 2013, 3024, 4031}
"""Error numbers of what may work when tried again: no connection left, shutting down, cut off, lock time-out, deadlock,
statement time-out."""


class MysqlConnection(ConnectionOptions):
    """A MySQL or MariaDB database, by URL or by its parts."""

    type: Literal["mysql", "mariadb"] = "mysql"
    url: SecretStr | None = Field(default=None, description="mysql://user:password@host:3306/database")
    host: str | None = Field(default=None, description="Host name.")
    port: int | None = Field(default=None, ge=1, le=65535, description="Port; 3306 when unset.")
    database: str | None = Field(default=None, description="Database name.")
    user: str | None = Field(default=None, description="User to connect as; SELECT on the tables is enough.")
    password: SecretStr | None = Field(default=None, description="Its password, from `${A_VARIABLE}`.")
    connect_timeout: int = Field(default=10, ge=1, description="Seconds to wait for a connection.")
    ssl_ca: str | None = Field(default=None, description="File with the server's certificate authority; turns TLS on.")

    @model_validator(mode="after")
    def _url_or_parts(self) -> MysqlConnection:
        if self.url is not None:
            check_url(self.url.get_secret_value(), ("mysql", "mariadb"))
        if not self.parts.get("database"):
            raise ValueError("set `url` with a database in it, or `host` and `database`")
        return self

    @property
    def parts(self) -> dict[str, str]:
        """Merged: a part that is set by itself wins over the same part of the URL."""
        found = {} if self.url is None else url_parts(self.url.get_secret_value())
        own = {"host": self.host, "port": self.port, "database": self.database, "user": self.user}
        found |= {k: str(v) for k, v in {**own, "ssl_ca": self.ssl_ca}.items() if v is not None}
        if self.password is not None:
            found["password"] = self.password.get_secret_value()
        return {"host": "localhost", "port": "3306", **found}

    @property
    def secrets(self) -> tuple[str, ...]:
        password = self.parts.get("password")
        return (password,) if password else ()

    @property
    def where(self) -> str:
        """For messages."""
        parts = self.parts
        return f"{parts['host']}:{parts['port']}/{parts['database']}"

    @property
    def jdbc(self) -> tuple[str, dict[str, str]]:
        """Address and properties: user and password never go into the address, which Spark shows. The mysql scheme gets
        us Spark's MySQL dialect, which quotes names with backticks."""
        parts = self.parts
        address = f"jdbc:mysql://{parts['host']}:{parts['port']}/{parts['database']}?permitMysqlScheme"
        wanted = {
            "driver": "org.mariadb.jdbc.Driver",
            "connectTimeout": str(self.connect_timeout * 1000),
            "tinyInt1isBit": "false",
            # A reader whose rows wait for a slow load must not be cut off after a minute.
            "sessionInitStatement": f"{SESSION}, net_write_timeout = 3600",
            "connectionAttributes": "program_name:floodmark",
        }
        if "ssl_ca" in parts:
            wanted |= {"sslMode": "verify-full", "serverSslCert": parts["ssl_ca"]}
        else:
            wanted["allowPublicKeyRetrieval"] = "true"  # MySQL 8's way of checking passwords needs it
        return address, wanted | {name: parts[name] for name in ("user", "password") if name in parts}

    def connect(self) -> pymysql.Connection[Any]:
        """Autocommit: each statement sees the newest. Read-only, whatever the user may do."""
        try:
            import pymysql
        except ModuleNotFoundError as error:
            raise MissingExtra("pymysql is not installed", hint="pip install 'floodmark[mysql]'") from error
        parts = self.parts
        options: dict[str, Any] = {"ssl_ca": parts["ssl_ca"], "ssl_verify_identity": True} if "ssl_ca" in parts else {}
        try:
            db = pymysql.connect(
                host=parts["host"],
                port=int(parts["port"]),
                user=parts.get("user"),
                password=parts.get("password", ""),
                database=parts["database"],
                charset="utf8mb4",
                autocommit=True,
                connect_timeout=self.connect_timeout,
                program_name="floodmark",
                init_command=SESSION,
                **options,
            )
            with db.cursor() as cursor:
                cursor.execute("SET SESSION TRANSACTION READ ONLY")
        except RuntimeError as error:  # what pymysql raises when a password needs a package that is not there
            raise MissingExtra(f"{error}", hint="pip install 'floodmark[mysql]'") from error
        except pymysql.Error as error:
            raise SourceError(
                f"can't connect to MySQL at {self.where}: {reason(error)}", transient=may_pass(error)
            ) from error
        return db


def reason(error: Exception) -> str:
    """The server's words, without the number before them."""
    said = error.args[-1] if error.args else error
    return str(said).strip() or type(error).__name__


def may_pass(error: Exception) -> bool:
    import pymysql

    number = error.args[0] if error.args else None
    return number in _PASSING or isinstance(error, pymysql.err.InterfaceError)
