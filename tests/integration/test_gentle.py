"""Gentle on the source: read-only sessions with a name and limits, few of them, and the least rights."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest
from tests.lab import Lab, ok
from tests.mariadb import MariadbServer
from tests.services import PostgresServer, run_cli, wait_for

from floodmark.errors import SourceError


class Watch:
    """Looks at the sessions of ours while a run works."""

    def __init__(self, lab: Lab, name: str = "floodmark") -> None:
        self._lab, self._name = lab, name
        self._done = threading.Event()
        self.most = 0
        self.open_snapshots: set[str] = set()

    def __enter__(self) -> Watch:
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        ours = (
            "SELECT pid, backend_start, query FROM pg_stat_activity "
            f"WHERE application_name = '{self._name}' AND datname = current_database()"
        )
        with psycopg.connect(self._lab.url, autocommit=True) as db:
            while not self._done.wait(0.01):
                found: list[Any] = db.execute(ours.encode()).fetchall()
                self.most = max(self.most, len(found))
                self.open_snapshots |= {f"{pid} {since}" for pid, since, query in found if "export_snapshot" in query}


def connection(lab: Lab, options: str) -> None:
    """The project's file with more options on its connection."""
    path = lab.root / "floodmark.yml"
    text = path.read_text()
    path.write_text(text.replace(f'url: "{lab.url}"', f'url: "{lab.url}", {options}'))


def test_few_sessions_under_their_own_name_and_a_snapshot_per_slice(pg_lab: Lab) -> None:
    for n in range(3):
        pg_lab.fill(400, f"2026-01-0{n + 1}", start=1 + n * 400)
    pg_lab.write(batch_rows=400, source="{connection: shop, table: orders, partitions: 6}")
    connection(pg_lab, "application_name: nightly, max_connections: 4")
    with Watch(pg_lab, "nightly") as watch:
        result = ok(pg_lab.load().run("orders"))
    pg_lab.assert_equal()
    assert result.slices > 1
    assert 0 < watch.most <= 4
    assert len(watch.open_snapshots) == result.slices


def test_every_session_is_read_only(pg_lab: Lab) -> None:
    project = pg_lab.project()
    source: Any = project._source(project.spec.pipelines["orders"])
    with pytest.raises(SourceError, match="read-only transaction"):
        source._rows("INSERT INTO orders VALUES (1, 'x', now()) RETURNING id")
    with source.snapshot():
        held = pg_lab_sessions(pg_lab, "state = 'idle in transaction'")
        assert len(held) == 1
    source.close()
    # The readers' sessions say so, too.
    address, properties = source._connection.jdbc
    assert "default_transaction_read_only = on" in source._session_of_readers
    assert properties["ApplicationName"] == "floodmark"
    assert pg_lab.url not in address


def pg_lab_sessions(lab: Lab, where: str) -> list[Any]:
    with psycopg.connect(lab.url, autocommit=True) as db:
        ours = f"SELECT pid FROM pg_stat_activity WHERE application_name = 'floodmark' AND {where}"
        return db.execute(ours.encode()).fetchall()


def test_a_lock_is_not_waited_for_longer_than_allowed_and_tried_again(pg_lab: Lab) -> None:
    pg_lab.fill(3)
    pg_lab.write(retries="{attempts: 2, wait: 1ms}")
    connection(pg_lab, "lock_timeout: 100ms")
    with psycopg.connect(pg_lab.url) as db:
        db.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        result = pg_lab.load().run("orders")
        assert "lock timeout" in result.errors[0]
        assert any("trying again" in notice for notice in result.notices)
    ok(pg_lab.load().run("orders"))
    pg_lab.assert_equal()


def test_a_statement_is_ended_by_the_server(pg_lab: Lab) -> None:
    pg_lab.fill(3)
    pg_lab.execute("CREATE VIEW slow AS SELECT o.* FROM orders o, LATERAL (SELECT pg_sleep(0.5 + o.id * 0)) s")
    pg_lab.write(source="{connection: shop, table: slow}", retries="{attempts: 1}")
    connection(pg_lab, "statement_timeout: 200ms")
    result = pg_lab.load().run("orders")
    assert "statement timeout" in result.errors[0]


def test_a_snapshot_that_grew_too_old_is_taken_anew(pg_lab: Lab) -> None:
    """The server ends the session that holds it, here at the hands of a transform; the slice is read again."""
    pg_lab.fill(3)
    (pg_lab.root / "slowly.py").write_text(
        "import pathlib, psycopg\n"
        "HERE = pathlib.Path(__file__).parent\n"
        "def wait(batch):\n"
        "    if not (HERE / 'waited').exists():\n"
        "        (HERE / 'waited').touch()\n"
        f"        with psycopg.connect({pg_lab.url!r}, autocommit=True) as db:\n"
        '            db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "\n'
        "                       \"WHERE state = 'idle in transaction' AND datname = current_database()\")\n"
        "    return batch\n"
    )
    pg_lab.write(transform="{python: 'slowly:wait'}", retries="{wait: 1ms}")
    connection(pg_lab, "snapshot_age: 90s")
    project = pg_lab.load()
    source: Any = project._source(project.spec.pipelines["orders"])
    assert source._rows("SHOW idle_in_transaction_session_timeout") == [("90s",)]
    source.close()
    result = ok(project.run("orders"))
    assert any("snapshot" in notice and "trying again" in notice for notice in result.notices)
    pg_lab.assert_equal()


def test_the_printed_grants_are_enough_and_needed_on_postgres(pg_lab: Lab, postgres: PostgresServer) -> None:
    pg_lab.execute('CREATE SCHEMA "Odd one"')
    pg_lab.execute('CREATE TABLE "Odd one"."my orders" AS SELECT 1::bigint id, \'a\' val, now() updated_at')
    pg_lab.execute("CREATE ROLE reader LOGIN PASSWORD 'reader-pw'")
    pg_lab.execute("REVOKE CONNECT ON DATABASE " + pg_lab.url.rpartition("/")[2] + " FROM PUBLIC")
    try:
        url = pg_lab.url.replace(f"{postgres.user}:{postgres.password}", "reader:reader-pw")
        pg_lab.write(source="{connection: shop, table: 'Odd one.my orders'}")
        path = pg_lab.root / "floodmark.yml"
        path.write_text(path.read_text().replace(pg_lab.url, url))
        assert not pg_lab.load().run("orders").success
        printed = run_cli("plan", "--grants", cwd=pg_lab.root).stdout
        assert "reader-pw" not in printed
        for statement in printed.splitlines():
            pg_lab.execute(statement)
        assert ok(pg_lab.load().run("orders")).rows.inserted == 1
    finally:
        pg_lab.execute("DROP OWNED BY reader")
        pg_lab.execute("DROP ROLE reader")


def test_the_printed_grants_are_enough_and_sessions_read_only_on_mariadb(my_lab: Lab, mariadb: MariadbServer) -> None:
    my_lab.fill(3)
    mariadb.execute("CREATE USER reader@'%' IDENTIFIED BY 'reader-pw'")
    try:
        url = my_lab.url.replace(f"{mariadb.user}:{mariadb.password}", "reader:reader-pw")
        path = my_lab.write()
        path.write_text(path.read_text().replace(my_lab.url, url))
        assert not my_lab.load().run("orders").success
        for statement in run_cli("plan", "--grants", cwd=my_lab.root).stdout.splitlines():
            mariadb.execute(statement.rstrip(";"))
        ok(my_lab.load().run("orders"))
        my_lab.assert_equal()
    finally:
        mariadb.execute("DROP USER reader@'%'")
    project = my_lab.project()
    source: Any = project._source(project.spec.pipelines["orders"])
    with pytest.raises(SourceError, match="READ ONLY"):
        source._rows("INSERT INTO orders VALUES (9, 'x', now())")
    limits = source._rows("SELECT @@lock_wait_timeout, @@max_statement_time, @@time_zone")[0]
    assert (limits[0], float(limits[1]), limits[2]) == (10, 0.0, "+00:00")
    source.close()


def test_a_statement_is_ended_by_mariadb(my_lab: Lab) -> None:
    my_lab.fill(3)
    my_lab.execute("CREATE VIEW slow AS SELECT o.* FROM orders o WHERE sleep(0.3) = 0")
    my_lab.write(source="{connection: shop, table: slow}", retries="{attempts: 1}")
    path = my_lab.root / "floodmark.yml"
    path.write_text(path.read_text().replace(f'url: "{my_lab.url}"', f'url: "{my_lab.url}", statement_timeout: 200ms'))
    result = my_lab.load().run("orders")
    assert "max_statement_time" in result.errors[0]


def test_the_watch_sees_sessions(pg_lab: Lab) -> None:
    with Watch(pg_lab) as watch, psycopg.connect(pg_lab.url, application_name="floodmark"):
        wait_for(lambda: watch.most == 1)
