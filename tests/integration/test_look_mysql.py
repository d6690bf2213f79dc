"""Each known way to commit below the mark on MySQL and MariaDB."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pymysql
import pytest
from tests.lab import Lab, ok
from tests.late import BY_ID, BY_TIME, NEW, TABLES, add, filled_by_database, meanwhile, shows, until_all_is_in
from tests.mariadb import MariadbServer
from tests.services import wait_for


@pytest.fixture
def world(my_lab: Lab) -> Lab:
    return filled_by_database(my_lab)


@contextmanager
def session(lab: Lab) -> Iterator[Any]:
    connection = lab.mariadb()
    try:
        yield connection.cursor()
    finally:
        connection.close()


@pytest.mark.parametrize("change", [BY_TIME, BY_ID])
@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_transaction_that_commits_late(world: Lab, change: str, mode: str) -> None:
    project = world.project(mode=mode, change=change)
    add(world, "early")
    with session(world) as late:
        late.execute("BEGIN")
        late.execute(NEW.format("late"))
        add(world, "newer")
        result = ok(project.run("orders"))
        assert result.guarantee == "fenced"
        if mode == "upsert":
            assert shows(world, "newer"), "a long transaction never stops fresh data in an idempotent mode"
        else:
            assert result.rows_waiting == 2, "append counts the rows that wait"
        late.execute("COMMIT")
    until_all_is_in(project, world)


def test_a_statement_stalled_behind_a_lock(world: Lab) -> None:
    """Its NOW() was taken when it began; it has no transaction yet that anybody could list."""
    project = world.project(mode="append", change=BY_TIME)
    world.execute("CREATE TABLE gate (id int)")
    with session(world) as lock, session(world) as late, session(world) as watch:
        lock.execute("LOCK TABLES gate WRITE")
        stalled = "INSERT INTO orders (val) SELECT concat('late', count(*)) FROM gate"
        with meanwhile(lambda: late.execute(stalled)):
            waiting = "SELECT count(*) FROM information_schema.processlist WHERE info LIKE 'INSERT%%gate'"
            wait_for(lambda: watch.execute(waiting) and watch.fetchone()[0] == 1)
            watch.execute("SELECT sleep(1.2)")  # for the newer row to be further away than the margin
            add(world, "newer")
            watch.execute("SELECT sleep(1.2)")
            assert ok(project.run("orders")).rows_waiting == 1
            lock.execute("UNLOCK TABLES")
    until_all_is_in(project, world)


def test_a_poller_that_keeps_the_list_of_transactions_old(world: Lab) -> None:
    """InnoDB renews it only when nobody has read it for a tenth of a second: an old one proves nothing."""
    project = world.project(mode="append", change=BY_TIME)
    add(world, "early")
    until_all_is_in(project, world)
    done, polled = threading.Event(), threading.Event()

    def poll() -> None:
        with session(world) as poller:
            while not done.is_set():
                poller.execute("SELECT count(*) FROM information_schema.innodb_trx")
                polled.set()

    with meanwhile(poll):
        try:
            assert polled.wait(30)
            with session(world) as late:
                late.execute("BEGIN")
                late.execute(NEW.format("late"))
                late.execute("SELECT sleep(1.2)")
                add(world, "newer")
                late.execute("SELECT sleep(1.2)")
                assert ok(project.run("orders")).rows_waiting == 1
                late.execute("COMMIT")
        finally:
            done.set()
    until_all_is_in(project, world)


def test_looks_in_quick_succession_all_prove_something(world: Lab) -> None:
    """Each reads the list of transactions, which is not renewed for a tenth of a second after that."""
    add(world, "early")
    project = world.project(mode="append", change=BY_ID.replace("wait: 100ms", "wait: 0s"))
    assert [project.plan("orders").rows for _ in range(5)] == [1] * 5


@pytest.mark.parametrize("change", [BY_TIME, BY_ID])
def test_connections_that_never_rest_do_not_stop_the_mark(world: Lab, change: str) -> None:
    """Always in some statement when somebody looks, but never in the same one."""
    project = world.project(mode="append", change=change.replace("100ms", "5s"))
    done = threading.Event()

    def work(statement: str) -> None:
        with session(world) as busy:
            while not done.is_set():
                busy.execute(statement)

    slow = "INSERT INTO orders (val) SELECT concat('slow', sleep(0.2))"
    with meanwhile(lambda: work(slow)), meanwhile(lambda: work(slow)):
        try:
            wait_for(lambda: ok(project.run("orders")).rows.inserted, "rows loaded while others never rest")
        finally:
            done.set()
    until_all_is_in(project, world)


def test_server_and_sessions_in_different_zones(world: Lab) -> None:
    """TIMESTAMP holds the moment, whatever zone a session is in; DATETIME holds what its writer's clock showed."""
    project = world.project(mode="append", change=BY_TIME)
    for zone in ("+05:00", "-09:30", "SYSTEM"):
        with session(world) as late:
            late.execute(f"SET time_zone = '{zone}'")
            late.execute("BEGIN")
            late.execute(NEW.format(zone))
            add(world, "newer")
            ok(project.run("orders"))
            late.execute("COMMIT")
        ok(project.run("orders"))
    until_all_is_in(project, world)
    world.execute("ALTER TABLE orders MODIFY updated_at datetime(6) NOT NULL DEFAULT current_timestamp(6)")
    guarantee = project.plan("orders").guarantee
    assert guarantee.name == "delayed"
    assert "has no time zone" in guarantee.reason
    declared = world.project(mode="append", change=BY_TIME.replace("wait", "timezone: UTC, wait"))
    assert declared.plan("orders").guarantee.name == "fenced"


def test_whole_seconds(my_lab: Lab) -> None:
    create = TABLES["mariadb"].replace("current_timestamp(6)", "utc_timestamp()").replace("timestamp(6)", "datetime")
    world = filled_by_database(my_lab, create)
    project = world.project(mode="append", change=BY_TIME.replace("wait", "timezone: UTC, wait"))
    for round_ in range(3):
        with session(world) as late:
            late.execute("BEGIN")
            late.execute(NEW.format(f"late {round_}"))
            add(world, "newer")
            ok(project.run("orders"))
            late.execute("COMMIT")
            ok(project.run("orders"))
    until_all_is_in(project, world)


def test_an_xa_transaction_across_a_restart(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> None:
    with MariadbServer() as server:
        lab = filled_by_database(Lab(tmp_path_factory.mktemp("p"), "mariadb", server.create_database(), spark))
        project = lab.project(mode="append", change=BY_TIME)
        with session(lab) as late:
            late.execute("XA START 'late'")
            late.execute(NEW.format("late"))
            add(lab, "newer")
            assert ok(project.run("orders")).rows_waiting == 1
            late.execute("XA END 'late'")
            late.execute("XA PREPARE 'late'")
        assert ok(project.run("orders")).rows_waiting == 1
        server.restart()
        assert ok(project.run("orders")).rows_waiting == 1
        with session(lab) as again:
            again.execute("XA COMMIT 'late'")
        until_all_is_in(project, lab)


def test_without_the_process_right_it_is_said_what_to_grant(world: Lab, mariadb: MariadbServer) -> None:
    url = urlsplit(world.url)
    database = url.path[1:]
    mariadb.execute(f"CREATE USER plain_{database}@'%' IDENTIFIED BY 'plain'")
    mariadb.execute(f"GRANT SELECT ON {database}.* TO plain_{database}@'%'")
    own, world.url = world.url, f"mysql://plain_{database}:plain@{url.hostname}:{url.port}{url.path}"
    try:
        project = world.project(mode="append", change=BY_TIME)
        guarantee = project.plan("orders").guarantee
        assert (str(guarantee), guarantee.fix) == ("delayed 5m", f"GRANT PROCESS ON *.* TO 'plain_{database}'@'%';")
        assert guarantee.fix in project.grants("orders")
        project.close()
        mariadb.execute(guarantee.fix)
        assert str(world.load().plan("orders").guarantee) == "fenced"
    finally:
        world.url = own
        mariadb.execute(f"DROP USER plain_{database}@'%'")


def test_numbers_that_the_application_fills_weaken_the_guarantee(world: Lab) -> None:
    project = world.project(mode="append", change=BY_ID)
    assert project.plan("orders").guarantee.name == "fenced"
    world.execute("ALTER TABLE orders MODIFY id bigint NOT NULL")
    guarantee = project.plan("orders").guarantee
    assert guarantee.name == "delayed"
    assert "AUTO_INCREMENT" in guarantee.reason
    declared = world.project(mode="append", change=BY_ID.replace("wait", "fence: transactions, wait"))
    assert declared.plan("orders").guarantee.name == "fenced"


def test_a_cut_connection_while_writers_are_listed_is_tried_again(world: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from floodmark.sources.mysql import fence as mysql_fence

    failed: list[bool] = []
    real = mysql_fence.list_writers

    def cut_once(connect: Any) -> Any:
        if not failed:
            failed.append(True)
            raise pymysql.err.OperationalError(2013, "Lost connection to MySQL server during query")
        return real(connect)

    monkeypatch.setattr(mysql_fence, "list_writers", cut_once)
    add(world, "early")
    until_all_is_in(world.project(mode="append", change=BY_TIME), world)
    assert failed
