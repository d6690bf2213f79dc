"""Who may still write on a MySQL or MariaDB server: connections in the middle of a statement, and open transactions.

NOW() is the start of the statement, and a number is drawn inside one: so whoever may still bring an old value is in a
statement (its time was taken, though it may wait behind a lock and have no transaction yet) or in a transaction that
InnoDB lists. Connections are listed first, transactions then: one that leaves the first list meanwhile is in the
second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from floodmark.model.ledger import ServerSeen
from floodmark.model.table import Cursor
from floodmark.sources.fence import Caveat

if TYPE_CHECKING:
    import pymysql

Rows = Callable[[str], list[tuple[Any, ...]]]
Connect = Callable[[], "pymysql.Connection[Any]"]

IDLE = {"Sleep", "Daemon", "Binlog Dump", "Binlog Dump GTID"}
KNOWN_ENGINES = {"innodb", "myisam", "aria", "memory", "csv", "archive"}
DENIED = {1227, 1142, 1044, 1045}

_MARK = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
_TRANSACTIONS = "SELECT trx_mysql_thread_id, cast(trx_started AS char), trx_id FROM information_schema.innodb_trx"
# How long each has been in its statement; MariaDB says so to the millisecond.
_BUSY_MARIADB = "SELECT id, command, time_ms FROM information_schema.processlist"
_BUSY_MYSQL = "SELECT id, command, time * 1000 FROM information_schema.processlist"
_CLOCK = "SELECT cast(unix_timestamp(sysdate(6)) * 1000 AS signed)"

NEEDS_PROCESS = "SELECT 1 FROM information_schema.innodb_cmp LIMIT 1"
"""Turned away without the right to list transactions; but unlike a look at their list it does not keep the list's copy
from being renewed."""

READ_ONLY = 2**47
"""Transactions that have not written yet have a number from here on, and get another one when they do."""


class Statement(NamedTuple):
    connection: int
    began: int
    """Milliseconds, by the server's clock."""


class Transaction(NamedTuple):
    connection: int
    started: str
    """To the second: it only tells two transactions of one connection apart, and is never used as a time."""
    number: int

    @property
    def name(self) -> str:
        return f"t{self.connection}@{self.started}#{self.number}"


@dataclass(frozen=True)
class MysqlWriters:
    busy: frozenset[Statement]
    """Connections in a statement."""
    transactions: frozenset[Transaction]
    detached: frozenset[str]
    """XA transactions that were prepared: they have no connection any more, and may have been anybody's."""
    jitter: int = 50
    """Milliseconds by which one statement's begin may differ between two listings."""

    @property
    def writers(self) -> frozenset[str]:
        return frozenset([*(f"c{c}@{b}" for c, b in self.busy), *(t.name for t in self.transactions), *self.detached])

    def left(self, known: frozenset[str]) -> frozenset[str]:
        return self.detached | {now for name in known for now in self._now(name)}

    def _now(self, name: str) -> Iterator[str]:
        connection, _, rest = name[1:].partition("@")
        if name.startswith("c"):
            began = int(rest)
            if any(s.connection == int(connection) and s.began <= began + self.jitter for s in self.busy):
                yield name
            else:
                # Its statement is over; what it has written may wait in the transaction around it.
                yield from (t.name for t in self.transactions if t.connection == int(connection))
        elif name.startswith("t"):
            started, _, number = rest.rpartition("#")
            yield from (t.name for t in self.transactions if _same(t, int(connection), started, int(number)))


def _same(now: Transaction, connection: int, started: str, number: int) -> bool:
    """One that has begun to write since has another number than before."""
    same_number = now.number == number or number >= READ_ONLY
    return (now.connection, now.started) == (connection, started) and same_number


def list_writers(connect: Connect) -> MysqlWriters | None:
    """On a connection of its own: the list of transactions is a copy that is renewed only when nobody has read it for a
    while, and only one that shows this very connection is younger than it. None when it is older."""
    db = connect()
    try:
        with db.cursor() as cursor:
            own: int = db.thread_id()  # type: ignore[no-untyped-call]
            exact = "MariaDB" in db.get_server_info()  # type: ignore[no-untyped-call]
            cursor.execute(_MARK)
            cursor.execute(_CLOCK)
            clock = int(cursor.fetchall()[0][0])
            cursor.execute(_BUSY_MARIADB if exact else _BUSY_MYSQL)
            busy = [row for row in cursor.fetchall() if row[0] != own and row[1] not in IDLE]
            cursor.execute(_TRANSACTIONS)
            found = cursor.fetchall()
    finally:
        db.close()
    if own not in {thread for thread, _, _ in found}:
        return None
    return MysqlWriters(
        frozenset(Statement(number, clock - int(spent or 0)) for number, _, spent in busy),
        frozenset(Transaction(thread, s, int(number)) for thread, s, number in found if thread not in (0, own)),
        frozenset(f"x{number}" for thread, _, number in found if thread == 0),
        50 if exact else 1500,
    )


def seen(rows: Rows, clock: datetime) -> ServerSeen:
    """By the server's own id where it has one, and by how far InnoDB's log has come."""
    named: dict[str, str] = dict(
        rows("SHOW VARIABLES WHERE Variable_name IN ('server_uuid', 'server_uid', 'hostname', 'port')")
    )
    identity = named.get("server_uuid") or named.get("server_uid") or f"{named['hostname']}:{named['port']}"
    log = rows("SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_lsn_current', 'Innodb_redo_log_current_lsn')")
    return ServerSeen(identity=identity, log=int(log[0][1]) if log else None, clock=clock)


def server_caveats(rows: Rows) -> Iterator[Caveat]:
    settings: dict[str, str] = dict(
        rows("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wsrep_on', 'group_replication_group_name')")
    )
    if settings.get("wsrep_on") == "ON" or settings.get("group_replication_group_name"):
        yield Caveat("this server is one of a cluster, and the others' transactions can't be seen from here")
    commands = {str(row[4]) for row in rows("SHOW PROCESSLIST")}
    if any(command.startswith(("Slave", "Replica")) for command in commands):
        yield Caveat("this is a replica, where open transactions of the primary can't be seen", "read the primary")


def engine_caveats(rows: Rows, table: str | None) -> Iterator[Caveat]:
    """Transactions of other engines are in no list; those without any have committed when their statement ends."""
    name = None if table is None else table.rpartition("`.`")[2].strip("`").replace("``", "`")
    schema = f" FROM {table[: -len(f'.`{name}`')]}" if table is not None and "`.`" in table else ""
    if name is None:
        return
    literal = name.replace("'", "''")
    for row in rows(f"SHOW TABLE STATUS{schema} WHERE Name = '{literal}'"):
        if row[1] is not None and row[1].lower() not in KNOWN_ENGINES:
            yield Caveat(f"{name} is a table of {row[1]}, whose transactions can't be listed")


def zone_caveats(cursor: Cursor) -> Iterator[Caveat]:
    if not cursor.leading.zoned and cursor.timezone is None:
        yield Caveat(
            f'"{cursor.leading.name}" has no time zone, so what its values mean hangs on each writer\'s session',
            "set `timezone:` if all of them write in one zone, or make the column TIMESTAMP",
        )


def sequence_caveats(rows: Rows, table: str | None, cursor: Cursor) -> Iterator[Caveat]:
    name = cursor.leading.name
    for field, _, _, _, default, extra in rows(f"SHOW COLUMNS FROM {table}") if table is not None else ():
        if field == name and ("auto_increment" in extra or "nextval(" in (default or "")):
            return
    yield Caveat(
        f'"{name}" is no AUTO_INCREMENT column, so who fills it and when is not known',
        "fence: transactions where each transaction takes its values by itself",
    )


NO_PROCESS = Caveat("other sessions can't be seen without the PROCESS right", "GRANT PROCESS ON *.* TO CURRENT_USER;")
