from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from tests.mariadb import MariadbServer
from tests.services import PostgresServer

LEAVES_A_SERVER = """
import os, sys
from tests.services import PostgresServer
server = PostgresServer().__enter__()
print(server._process.pid, server.folder, flush=True)
sys.stdin.read()
"""


def test_each_test_gets_an_empty_database(pg_db: str, postgres: PostgresServer) -> None:
    with postgres.connect(pg_db) as connection:
        connection.execute("CREATE TABLE t (id int)")
        found = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    other = postgres.create_database()
    assert other != pg_db
    with postgres.connect(other) as connection:
        assert connection.execute("SELECT to_regclass('t')").fetchone() == (None,)
    assert found == (1,)


def test_the_server_is_set_up_for_what_tests_need(pg_db: str, postgres: PostgresServer) -> None:
    with postgres.connect(pg_db) as connection:
        for name, value in {
            "wal_level": "logical",
            "max_prepared_transactions": "20",
            "max_connections": "100",
            "fsync": "off",
            "password_encryption": "scram-sha-256",
            "TimeZone": "UTC",
        }.items():
            assert connection.execute("SELECT current_setting(%s)", [name]).fetchone() == (value,)


def test_a_wrong_password_is_refused(pg_db: str, postgres: PostgresServer) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        postgres.connect(pg_db.replace(postgres.password, "wrong"))


def test_a_database_with_leftovers_is_dropped(postgres: PostgresServer) -> None:
    url = postgres.create_database()
    holder = postgres.connect(url, autocommit=False)
    with postgres.connect(url) as connection:
        connection.execute("CREATE TABLE t (id int)")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("PREPARE TRANSACTION 'it''s left'")
    holder.execute("SELECT * FROM t")
    postgres.drop_database(url)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        postgres.connect(url)
    holder.close()


def test_a_killed_run_leaves_no_server_behind(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux tells a child that its parent has died")
    script = subprocess.Popen(
        [sys.executable, "-c", LEAVES_A_SERVER],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": "/tmp"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert script.stdout is not None
    pid, folder = script.stdout.readline().split()
    assert Path(f"/proc/{pid}").exists()
    script.kill()
    script.communicate()
    deadline = time.monotonic() + 30
    while Path(folder, "data", "postmaster.pid").exists() and Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, f"Postgres {pid} outlived the test run"
        time.sleep(0.05)
    subprocess.run(["rm", "-rf", folder], check=True)


def test_a_mariadb_keeps_what_was_committed_over_a_restart(my_db: str, mariadb: MariadbServer) -> None:
    mariadb.execute("CREATE TABLE t (id int) ENGINE=InnoDB", my_db)
    mariadb.execute("INSERT INTO t VALUES (1)", my_db)
    mariadb.restart()
    assert mariadb.execute("SELECT id FROM t", my_db) == [(1,)]
