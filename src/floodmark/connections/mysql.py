"""How to reach a MySQL or MariaDB, for pymysql and for JDBC, with the password kept out of every text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from floodmark.connections.server import ServerOptions, milliseconds
from floodmark.errors import MissingExtra, SourceError

if TYPE_CHECKING:
    import pymysql


_PASSING = {1040, 1053, 1158, 1159, 1160, 1161, 1205, 1213, 1317, 1969, 2002, 2003, 2006, 2013, 3024, 4031}
"""Error numbers of what may work when tried again: no connection left, shutting down, cut off, lock time-out, deadlock,
statement time-out."""


class MysqlConnection(ServerOptions):
    """A MySQL or MariaDB database, by URL or by its parts."""

    schemes = ("mysql", "mariadb")
    usual_port = "3306"

    type: Literal["mysql", "mariadb"] = "mysql"
    ssl_ca: str | None = Field(default=None, description="File with the server's certificate authority; turns TLS on.")

    @property
    def parts(self) -> dict[str, str]:
        return {**super().parts, **({} if self.ssl_ca is None else {"ssl_ca": self.ssl_ca})}

    @property
    def session(self) -> str:
        """For every session of ours, in one statement. TIMESTAMP columns are shown in the session's zone. The two
        servers call read-only and the statement's limit differently; each skips the comment that is the other's."""
        limit = 0 if self.statement_timeout is None else milliseconds(self.statement_timeout)
        return (
            f"SET time_zone = '+00:00', lock_wait_timeout = {max(1, milliseconds(self.lock_timeout) // 1000)}"
            f" /*M!100101 , tx_read_only = 1, max_statement_time = {limit / 1000} */"
            f" /*!50720 , transaction_read_only = 1, max_execution_time = {limit} */"
        )

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
            "sessionInitStatement": f"{self.session}, net_write_timeout = 3600",
            "connectionAttributes": f"program_name:{self.application_name}",
        }
        if "ssl_ca" in parts:
            wanted |= {"sslMode": "verify-full", "serverSslCert": parts["ssl_ca"]}
        else:
            wanted["allowPublicKeyRetrieval"] = "true"  # MySQL 8's way of checking passwords needs it
        return address, wanted | {name: parts[name] for name in ("user", "password") if name in parts}

    @property
    def keywords(self) -> dict[str, Any]:
        """What pymysql takes, wherever it connects from."""
        parts = self.parts
        tls: dict[str, Any] = {"ssl_ca": parts["ssl_ca"], "ssl_verify_identity": True} if "ssl_ca" in parts else {}
        return {
            "host": parts["host"],
            "port": int(parts["port"]),
            "user": parts.get("user"),
            "password": parts.get("password", ""),
            "database": parts["database"],
            "charset": "utf8mb4",
            "autocommit": True,
            "connect_timeout": self.connect_timeout,
            "program_name": self.application_name,
            **tls,
        }

    @property
    def writing(self) -> str:
        """For sessions that write: names as other databases quote them, and a value that does not fit is an error."""
        return (
            "SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,ANSI_QUOTES,NO_ZERO_DATE,NO_ZERO_IN_DATE,"
            "ERROR_FOR_DIVISION_BY_ZERO,NO_BACKSLASH_ESCAPES', "
            f"lock_wait_timeout = {max(1, milliseconds(self.lock_timeout) // 1000)}"
        )

    def connect(self, *, writes: bool = False) -> pymysql.Connection[Any]:
        """Autocommit: each statement sees the newest. Read-only unless it `writes`, whatever the user may do."""
        driver()  # says what to install
        import pymysql
        from pymysql.constants import CLIENT

        options: dict[str, Any] = {"init_command": self.session}
        if writes:  # rows that an update found count, whether or not it changed anything in them
            options = {"init_command": self.writing, "client_flag": CLIENT.FOUND_ROWS}
        try:
            db = pymysql.connect(**self.keywords, **options)
        except RuntimeError as error:  # what pymysql raises when a password needs a package that is not there
            raise MissingExtra(f"{error}", hint="pip install 'floodmark[mysql]'") from error
        except pymysql.Error as error:
            raise SourceError(
                f"can't connect to MySQL at {self.where}: {reason(error)}", transient=may_pass(error)
            ) from error
        return db


def driver() -> Any:
    """pymysql, wherever it is needed first."""
    try:
        import pymysql
    except ModuleNotFoundError as error:
        raise MissingExtra("pymysql is not installed", hint="pip install 'floodmark[mysql]'") from error
    return pymysql


def reason(error: Exception) -> str:
    """The server's words, without the number before them."""
    said = error.args[-1] if error.args else error
    return str(said).strip() or type(error).__name__


def may_pass(error: Exception) -> bool:
    pymysql = driver()
    number = error.args[0] if error.args else None
    return number in _PASSING or isinstance(error, pymysql.err.InterfaceError)
