"""A storm: runs of the command line killed together with their JVM at any moment, the state's server restarted and the
source's sessions cut meanwhile, while writers go on. Afterwards ordinary runs have to make it good by themselves."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pymysql
from tests.races import LOOK, By, Difference, Mode, Race, RaceLab, compare
from tests.services import PostgresServer, end_with_parent, run_cli, wait_for

ROWS_BEFORE = 9000
SLICE = 1500
"""Several slices for each run: there is nearly always a commit to be killed in."""
EARLY = 5
"""One in so many runs dies while it starts; the others get as far as a commit first."""
READER = "storm_reader"
"""On MariaDB only the user tells the pipeline's sessions from the writers'. It outlives its storm, hence the name."""
EARLIER = {
    "postgres": "INSERT INTO orders (val, writer, updated_at) SELECT 'earlier', 0, now() - interval '1 hour' "
    "+ i * interval '1 millisecond' FROM generate_series(1, {}) i",
    "mariadb": "INSERT INTO orders (val, writer, updated_at) SELECT 'earlier', 0, current_timestamp(6) "
    "- interval 1 hour + interval seq * 1000 microsecond FROM seq_1_to_{}",
}


@dataclass(frozen=True)
class Survived:
    kills: int
    cuts: int
    """Sessions of ours that the source was told to end."""
    restarts: int
    written: int
    difference: Difference


@dataclass
class Storm:
    """`lab.state` is a database on `store`, which is nobody else's."""

    lab: RaceLab
    store: PostgresServer
    by: By
    mode: Mode
    seed: int
    rounds: int = 3
    option: str = LOOK
    kills: int = 0
    cuts: int = 0
    restarts: int = 0
    rng: random.Random = field(init=False)

    def run(self) -> Survived:
        print(f"storm {self.lab.kind} {self.by} {self.mode}{self.option} with seed {self.seed}", flush=True)
        self.rng = random.Random(self.seed)
        self.lab.execute(EARLIER[self.lab.kind].format(ROWS_BEFORE))
        self._declare(SLICE)
        race = Race(self.lab, self.by, self.mode, self.seed, self.option, pause=1, writers=3)
        with race.writing() as (stage, writers):
            for number in range(self.rounds):
                also = (self._nothing, self._restart_store, self._cut_source)[number % 3]
                self._strike(also, early=(number + 1) % EARLY == 0)
                stage.run_ended()
        self._declare(100_000)  # on a slow machine the writers have left many small slices to go
        run_cli("run", "orders", cwd=self.lab.root)
        project = self.lab.load()
        race.settle(project)
        project.close()
        found = compare(self.lab.source_rows(), self.lab.target_rows())
        return Survived(self.kills, self.cuts, self.restarts, sum(w.written for w in writers), found)

    def _declare(self, batch_rows: int) -> None:
        self.lab.declare(self.by, self.mode, self.option, batch_rows)
        if self.lab.kind == "mariadb":
            self.lab.ask(f"CREATE USER IF NOT EXISTS '{READER}'@'%' IDENTIFIED BY 'pw'")
            self.lab.ask(f"GRANT ALL ON *.* TO '{READER}'@'%'")
            url = urlsplit(self.lab.url)
            theirs = f"mysql://{READER}:pw@{url.hostname}:{url.port}{url.path}"
            file = self.lab.root / "floodmark.yml"
            file.write_text(file.read_text().replace(self.lab.url, theirs))

    # -- one run ----------------------------------------------------------------------------------------------------

    def _strike(self, also: Callable[[subprocess.Popen[bytes]], None], early: bool) -> None:
        """A run that dies at a moment that nobody chose; before that, something else befalls it."""
        with Path(self.lab.root, "storm.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "floodmark.cli.main", "run", "orders"],
                cwd=self.lab.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        try:
            if not early:
                enough = self._commits() + self.rng.randint(1, 2)
                wait_for(lambda: self._commits() >= enough or process.poll() is not None, "some commits")
            _lives(process, self.rng.uniform(0, 3))
            also(process)
            self.kills += _lives(process, self.rng.uniform(0, 3))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its JVM too, which would go on for a moment
            process.wait()

    def _commits(self) -> int:
        return self.lab.end.commits()

    def _nothing(self, process: subprocess.Popen[bytes]) -> None:
        """Killed, and that is all."""

    def _restart_store(self, process: subprocess.Popen[bytes]) -> None:  # noqa: ARG002 - one shape for all
        self.store.restart()
        self.restarts += 1

    def _cut_source(self, process: subprocess.Popen[bytes]) -> None:
        wait_for(lambda: self._cut() or process.poll() is not None, "a session to cut")

    def _cut(self) -> int:
        if self.lab.kind == "postgres":
            ended = self.lab.ask(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND application_name = 'floodmark'"
            )
        else:
            ended = self.lab.ask(f"SELECT id FROM information_schema.processlist WHERE user = '{READER}'")
            for (session,) in ended:
                with suppress(pymysql.err.OperationalError):  # it has gone by itself
                    self.lab.ask(f"KILL {session}")
        self.cuts += len(ended)
        return len(ended)


def _lives(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether it is still there after that."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False
