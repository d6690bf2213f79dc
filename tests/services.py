"""Real services for tests: a throw-away Postgres server, and the command line as its users start it."""

from __future__ import annotations

import ctypes
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import psycopg
from psycopg import sql

READY_SECONDS = 60

SETTINGS = """
listen_addresses = '127.0.0.1'
fsync = off
synchronous_commit = off
full_page_writes = off
max_connections = 100
max_prepared_transactions = 20
wal_level = logical
timezone = 'UTC'
"""


class PostgresServer:
    """A server of its own in a temporary folder, so that tests may restart it, fill it and watch its locks."""

    host = "127.0.0.1"
    user = "floodmark"
    password = "s3cret-pw"

    def __init__(self) -> None:
        self.binaries = find_postgres()
        # Not below pytest's own folder: only its owner may enter that, and as root the server runs as somebody else.
        self.folder = Path(tempfile.mkdtemp(prefix="floodmark-pg-"))
        self.port = free_port()
        self._account = postgres_account()
        self._process: subprocess.Popen[str] | None = None
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
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

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{database}"

    def connect(self, url: str | None = None, *, autocommit: bool = True) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(url or self.url(), autocommit=autocommit)

    def create_database(self, name: str | None = None) -> str:
        """Its URL."""
        name = name or f"test_{next(self._numbers)}"
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url(name)

    def drop_database(self, url: str) -> None:
        name = url.rpartition("/")[2]
        with self.connect(url) as connection:
            # What a test left prepared, or a slot, keeps its database from being dropped.
            prepared = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"
            for (gid,) in connection.execute(prepared).fetchall():
                connection.execute(sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(gid)))
            slots = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s"
            connection.execute(slots, [name])
        with self.connect() as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def start(self) -> None:
        command: list[str | Path] = [self.binaries / "postgres", "-D", self.folder / "data"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.folder, stdout=log, stderr=log, preexec_fn=end_with_parent, **self._account
            )
        self._wait_until_ready()

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGINT)  # "fast": ends sessions, keeps what was committed
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGQUIT)
            process.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def _initialise(self) -> None:
        password = self.folder / "password"
        password.write_text(self.password)
        if self._account:
            for path in (self.folder, password):
                shutil.chown(path, self._account["user"], self._account["group"])
        command: list[str | Path] = [self.binaries / "initdb", "-D", self.folder / "data", "-U", self.user, "-A"]
        command += ["scram-sha-256", f"--pwfile={password}", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, **self._account)
        if done.returncode != 0:
            raise RuntimeError(f"initdb failed:\n{done.stdout}{done.stderr}")
        with (self.folder / "data" / "postgresql.conf").open("a") as file:
            file.write(f"{SETTINGS}port = {self.port}\nunix_socket_directories = '{self.folder}'\n")

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    log = (self.folder / "log").read_text(errors="replace")
                    raise RuntimeError(f"Postgres did not start: {error}\n{log[-2000:]}") from error
            time.sleep(0.05)


def find_postgres() -> Path:
    """The folder with `initdb` and `postgres`; Debian's own versioned ones first, newest first."""
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: float(folder.parent.name), reverse=True
    )
    for program in ("initdb", "postgres"):
        if found := shutil.which(program):
            folders.append(Path(found).resolve().parent)
    if config := shutil.which("pg_config"):
        said = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=True)
        folders.append(Path(said.stdout.strip()))
    for folder in folders:
        if (folder / "initdb").is_file() and (folder / "postgres").is_file():
            return folder
    raise RuntimeError("no Postgres server programs (initdb, postgres) on this machine: run `make setup-tests`")


def postgres_account() -> dict[str, Any]:
    """Postgres refuses to run as root: then it runs as the user that Debian's package made."""
    if os.geteuid() != 0:
        return {}
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        raise RuntimeError("no OS user `postgres` on this machine: run `make setup-tests`") from None
    return {"user": "postgres", "group": "postgres", "extra_groups": []}


def wait_for(condition: Callable[[], object], what: str = "the condition", seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def end_with_parent() -> None:
    # A killed test run must not leave a server behind (Linux only; elsewhere the fixture's end does it).
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGQUIT)


NO_JAVA = {"JAVA_HOME": "/nonexistent", "PATH": "/usr/bin/none"}
"""A command that starts a JVM all the same fails here."""


def run_cli(
    *args: str | Path,
    cwd: Path,
    env: Mapping[str, str | None] | None = None,
    code: int | None = 0,
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """`floodmark ARGS` in a process of its own. Fails unless it ends with `code`; None takes any.

    A variable that is None in `env` is taken away.
    """
    settings = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1", **(env or {})}
    done = subprocess.run(
        [Path(sys.executable).with_name("floodmark"), *args],
        cwd=cwd,
        env={name: value for name, value in settings.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if code is not None:
        said = f"--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
        assert done.returncode == code, f"floodmark {' '.join(map(str, args))} ended with {done.returncode}\n{said}"
    return done


def run_faulty(
    *arguments: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Faults first, then the command: `run_faulty("target.load:after=kill", "run", "orders", cwd=…)`."""
    process = start_faulty(*arguments, cwd=cwd, env=env)
    stdout, stderr = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)


def start_faulty(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    faults = [a for a in arguments if "=" in a and ":" in a]
    command = [a for a in arguments if a not in faults]
    # Not a pipe: a JVM that outlives its killed parent would hold it open.
    with Path(cwd, "faulty.log").open("a") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "floodmark.testing.faults", *faults, "--", *command],
            cwd=cwd,
            env={**os.environ, "COLUMNS": "160", "NO_COLOR": "1", **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            text=True,
        )
