"""Targets whose tables outlive the process that fills them: what takes an hour to fill is filled once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from tests.mariadb import MariadbServer
from tests.services import PostgresServer

from floodmark.connections.delta import DeltaConnection
from floodmark.connections.iceberg import IcebergConnection
from floodmark.connections.mysql import MysqlConnection
from floodmark.connections.postgres import PostgresConnection
from floodmark.ports import Target
from floodmark.targets.delta.target import DeltaTarget
from floodmark.targets.iceberg.target import IcebergTarget
from floodmark.targets.mysql.target import MysqlTarget
from floodmark.targets.postgres.target import PostgresTarget
from floodmark.testing.target_suite import a_spec

DATABASE = "growing"
NEEDS = {"delta": "delta", "iceberg": "iceberg", "postgres": "postgres", "mariadb": "mysql"}


class KeptPostgres(PostgresServer):
    """In a folder that stays."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder.rmdir()
        self.folder = folder

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _initialise(self) -> None:
        settings = self.folder / "data" / "postgresql.conf"
        if not settings.exists():
            self.folder.mkdir(exist_ok=True)
            super()._initialise()
        with settings.open("a") as file:
            # The last word counts. With the default size of its log it would be at a checkpoint most of the time.
            file.write(f"port = {self.port}\nunix_socket_directories = '{self.folder}'\nmax_wal_size = 8GB\n")


class KeptMariadb(MariadbServer):
    """In a folder that stays."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder.rmdir()
        self.folder = folder

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _initialise(self) -> None:
        settings = self.folder / "my.cnf"
        if not settings.exists():
            self.folder.mkdir(exist_ok=True)
            super()._initialise()
        settings.write_text(re.sub(r"(?m)^port = \d+$", f"port = {self.port}", settings.read_text()))


@dataclass(frozen=True)
class Place:
    """Where the table is."""

    kind: str
    open: Callable[[str], Target]
    """By mode: it is filled by appends and changed by upserts."""
    settle: Callable[[], None] = lambda: None
    """What the server would do by itself some time after a large load, and in the middle of a measurement."""


@contextmanager
def place(kind: str, scratch: Path) -> Iterator[Place]:
    if os.geteuid() == 0:
        scratch.chmod(0o755)  # the server's user has to get through
    folder = scratch / kind
    if kind == "delta":
        lake = DeltaConnection(path=str(folder))
        yield Place(kind, lambda mode: DeltaTarget(lake, a_spec(mode), scratch))
    elif kind == "iceberg":
        warehouse = IcebergConnection(path=str(folder))
        yield Place(kind, lambda mode: IcebergTarget(warehouse, a_spec(mode), scratch))
    elif kind == "postgres":
        with KeptPostgres(folder) as server:
            yield _postgres(_database(server), scratch)
    else:
        with KeptMariadb(folder) as server:
            yield _mariadb(server, _database(server), scratch)


def _database(server: Any) -> str:
    """Its URL; made where it is missing."""
    try:
        server.connect(server.url(DATABASE)).close()
    except Exception:
        return str(server.create_database(DATABASE))
    return str(server.url(DATABASE))


def _postgres(url: str, scratch: Path) -> Place:
    connection = PostgresConnection(url=url)  # type: ignore[arg-type]

    def settle() -> None:
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("VACUUM ANALYZE orders")
            db.execute("CHECKPOINT")

    return Place("postgres", lambda mode: PostgresTarget(connection, a_spec(mode), scratch), settle)


def _mariadb(server: MariadbServer, url: str, scratch: Path) -> Place:
    connection = MysqlConnection(url=url)  # type: ignore[arg-type]

    def settle() -> None:
        server.execute("ANALYZE TABLE orders", url)

    return Place("mariadb", lambda mode: MysqlTarget(connection, a_spec(mode), scratch), settle)
