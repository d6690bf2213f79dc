"""A real streaming standby of a throw-away Postgres."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.services import PostgresServer, wait_for


class StandbyServer(PostgresServer):
    """Made by pg_basebackup from a running primary; replays what that writes until it is promoted."""

    def __init__(self, primary: PostgresServer) -> None:
        super().__init__()
        self._primary = primary

    def _initialise(self) -> None:
        if self._account:
            shutil.chown(self.folder, self._account["user"], self._account["group"])
        command: list[str | Path] = [
            self.binaries / "pg_basebackup",
            *("-h", self._primary.host, "-p", str(self._primary.port), "-U", self._primary.user),
            *("-D", self.folder / "data", "-R", "-X", "stream", "-c", "fast"),
        ]
        env = {**os.environ, "PGPASSWORD": self._primary.password}
        done = subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, check=False, **self._account
        )
        if done.returncode != 0:
            raise RuntimeError(f"pg_basebackup failed:\n{done.stdout}{done.stderr}")
        with (self.folder / "data" / "postgresql.conf").open("a") as file:
            file.write(f"port = {self.port}\nunix_socket_directories = '{self.folder}'\n")

    def has_replayed(self, primary: PostgresServer) -> None:
        with primary.connect() as there, self.connect() as here:
            found = there.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
            assert found is not None
            replayed = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            wait_for(lambda: here.execute(replayed, found).fetchall() == [(True,)], "the standby to catch up")

    def pause(self) -> None:
        with self.connect() as connection:
            connection.execute("SELECT pg_wal_replay_pause()")

    def resume(self) -> None:
        with self.connect() as connection:
            connection.execute("SELECT pg_wal_replay_resume()")

    def promote(self) -> None:
        with self.connect() as connection:
            connection.execute("SELECT pg_promote()")
