"""The own ways of MySQL and MariaDB, for the SQL store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from floodmark.state.address import Address
from floodmark.state.tables import LONGEST_NAME
from floodmark.state.ways import Connection, Driver, Trouble

PLACEHOLDER = "%s"
ROW_LOCK = " FOR UPDATE"
HAS_META = (
    "SELECT count(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'floodmark_meta'"
)
TYPES = {
    # MySQL's text would take `Orders` for `orders`, and `a` for `a `. As bytes they are what they are.
    "name": f"VARBINARY({4 * LONGEST_NAME})",
    # TEXT ends at 64 KiB.
    "body": "LONGTEXT",
    "number": "BIGINT NOT NULL AUTO_INCREMENT",
    "options": " ENGINE=InnoDB CHARSET=utf8mb4",
}

NUMBERS = ("connect_timeout", "read_timeout", "write_timeout", "client_flag")
SWITCHES = ("compress", "local_infile", "use_unicode", "ssl_check_hostname")
TLS = ("ssl_ca", "ssl_key", "ssl_cert", "ssl_capath", "ssl_cipher", "ssl_check_hostname")
OFF = ("false", "no", "off", "n", "f", "0")
"""Settings that are no text, and those that the driver wants in a map of their own."""

CONNECT_SECONDS = 10

GAVE_WAY = (1213,)
"""Deadlock. A lock that is waited for too long (1205) undoes the statement only, but we roll all of it back."""

AWAY = (1040, 1053, 1158, 1159, 1160, 1161, 1205, 1927, 2003, 2006, 2013, 2014, 2045, 2055, 4031)
"""Too many connections, shutdown, network, lock time-out, server gone."""

HINTS = {
    1040: "the server takes no more connections: wait, or raise max_connections",
    1044: "the user may not use this database: grant it CREATE, SELECT, INSERT, UPDATE and DELETE there",
    1045: "check user and password",
    1049: "create the database, or point `state:` at one that is there",
    1142: "the user may not do this: grant it CREATE, SELECT, INSERT, UPDATE and DELETE on the database",
    1205: "another session keeps it locked: see who it is with SHOW PROCESSLIST",
    1290: "this server is read-only, perhaps a replica: point `state:` at the primary",
    1021: "the server's disk is full: make room, then run again",
    1114: "the server's disk is full: make room, then run again",
    1836: "this server is read-only, perhaps a replica: point `state:` at the primary",
}


def driver() -> Driver:
    import pymysql

    return pymysql


def connect(address: Address, wait: timedelta) -> Connection:
    import pymysql
    from pymysql.constants import CLIENT

    seconds = max(1, round(wait.total_seconds()))
    wanted = {
        "charset": "utf8mb4",
        "connect_timeout": CONNECT_SECONDS,
        # A server that vanished without a word is noticed, rather than waited for. Twice: it gives up on locks first.
        "read_timeout": 2 * seconds,
        "write_timeout": 2 * seconds,
        # Strict, or what is too long would be cut off in silence.
        "init_command": f"SET SESSION innodb_lock_wait_timeout = {seconds}, sql_mode = 'STRICT_ALL_TABLES'",
    }
    options: dict[str, Any] = {**wanted, **address.parts(), **_settings(address.settings)}
    # An UPDATE counts the rows that it found, whether or not it changed them.
    options["client_flag"] = options.get("client_flag", 0) | CLIENT.FOUND_ROWS
    connection = pymysql.connect(**options)
    with connection.cursor() as cursor:
        # Under REPEATABLE READ a look for a lease that is not there locks the gap, and two runners deadlock on it.
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    return connection


def _settings(said: Mapping[str, str]) -> dict[str, Any]:
    """As the driver's types want them."""
    options: dict[str, Any] = dict(said)
    options |= {name: int(said[name]) for name in NUMBERS if name in said}
    options |= {name: said[name].strip().lower() not in OFF for name in SWITCHES if name in said}
    secured = {name.removeprefix("ssl_"): options.pop(name) for name in TLS if name in said}
    return {**options, "ssl": secured} if secured else options


def is_alive(connection: Connection) -> bool:
    connection.ping(reconnect=False)
    return True


def begin(connection: Connection, wait: timedelta, *, writes: bool) -> None:
    """The driver opens the transaction with its first statement, the same for both."""


def prepare(connection: Connection, wait: timedelta) -> None:
    """Nothing to prepare."""


def lock_creation(connection: Connection) -> None:
    """A CREATE TABLE commits by itself, so no lock would last; IF NOT EXISTS is enough here."""


def to_name(text: str) -> bytes:
    return text.encode()


def trouble(error: Exception) -> Trouble:
    number = _number(error)
    hint = HINTS.get(number)
    if hint is None and number in AWAY:
        hint = "check that the server runs and can be reached, then run again"
    gave_way = number in GAVE_WAY
    # (0, '') and «already closed» are what the driver says of a connection that it has given up itself.
    is_cut = error.args[:1] == (0,) or any(words in str(error).lower() for words in ("already closed", "was killed"))
    return Trouble(hint, is_transient=is_cut or gave_way or number in AWAY, was_undone=gave_way)


def _number(error: Exception) -> int:
    first = next(iter(error.args), 0)
    return first if isinstance(first, int) else 0
