"""A throw-away MariaDB server for tests, which may restart it, fill it and watch its locks."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pymysql
from tests.services import READY_SECONDS, end_with_parent, free_port

SETTINGS = """[mariadbd]
bind_address = 127.0.0.1
skip_name_resolve = on
innodb_flush_log_at_trx_commit = 0
innodb_buffer_pool_size = 128M
innodb_log_file_size = 64M
max_connections = 100
character_set_server = utf8mb4
default_time_zone = '+00:00'
local_infile = on
"""


class MariadbServer:
    """Reached over TCP with a user and a password, as a real one is."""

    host = "127.0.0.1"
    user = "floodmark"
    password = "s3cret-pw"

    def __init__(self) -> None:
        self.program = find_mariadb()
        self.folder = Path(tempfile.mkdtemp(prefix="floodmark-my-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)

    def __enter__(self) -> MariadbServer:
        try:
            self._initialise()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def url(self, database: str = "mysql") -> str:
        return f"mysql://{self.user}:{self.password}@{self.host}:{self.port}/{database}"

    def connect(self, url: str | None = None, **options: Any) -> pymysql.Connection[Any]:
        database = urlsplit(url or self.url()).path.lstrip("/")
        wanted = {"autocommit": True, "charset": "utf8mb4", **options}
        return pymysql.connect(
            host=self.host, port=self.port, user=self.user, password=self.password, database=database, **wanted
        )

    def execute(self, statement: str, url: str | None = None) -> list[tuple[Any, ...]]:
        with self.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def create_database(self, name: str | None = None) -> str:
        """Its URL."""
        name = name or f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
        return self.url(name)

    def drop_database(self, url: str) -> None:
        self.execute(f"DROP DATABASE `{urlsplit(url).path.lstrip('/')}`")

    def start(self) -> None:
        command = [self.program, f"--defaults-file={self.folder}/my.cnf", f"--datadir={self.folder}/data"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *_account()], cwd=self.folder, stdout=log, stderr=log, preexec_fn=end_with_parent
            )
        self._wait_until_ready()

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def _initialise(self) -> None:
        (self.folder / "my.cnf").write_text(
            f"{SETTINGS}port = {self.port}\nsocket = {self.folder}/socket\npid_file = {self.folder}/pid\n"
            # A server that starts removes the temporary tables of all that share its folder for them.
            f"tmpdir = {self.folder}\n"
            f"init_file = {self.folder}/account.sql\n"
        )
        # Read by the server at each start: MariaDB makes users only with SQL.
        account = (
            f"CREATE USER IF NOT EXISTS '{self.user}'@'%' IDENTIFIED BY '{self.password}';\n"
            f"GRANT ALL ON *.* TO '{self.user}'@'%' WITH GRANT OPTION;\n"
        )
        (self.folder / "account.sql").write_text(account)
        command: list[str | Path] = ["mariadb-install-db", "--no-defaults", f"--datadir={self.folder}/data"]
        command += ["--auth-root-authentication-method=normal", "--skip-test-db", "--force", *_account()]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"mariadb-install-db failed:\n{done.stdout}{done.stderr}")

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                self.connect().close()
                return
            except pymysql.Error as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    log = (self.folder / "log").read_text(errors="replace")
                    raise RuntimeError(f"MariaDB did not start: {error}\n{log[-2000:]}") from error
            time.sleep(0.05)


def find_mariadb() -> str:
    found = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        raise RuntimeError("no MariaDB server program (mariadbd) on this machine: run `make setup-tests`")
    return found


def _account() -> list[str]:
    """MariaDB runs as root only where it is told to."""
    return ["--user=root"] if os.geteuid() == 0 else []
