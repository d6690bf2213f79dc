"""The SQL store on real servers: races, locks, cut connections, rights. What SQLite has of its own is elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.mariadb import MariadbServer
from tests.services import PostgresServer

from floodmark.errors import LeaseHeld, StateError
from floodmark.state import sql
from floodmark.state.database import Database
from floodmark.state.sql import SqlStore
from floodmark.state.statements import Statements
from floodmark.state.tables import LONGEST_NAME
from floodmark.testing.store_suite import a_run, a_state, an_owner

PASSWORD = "s3cret-pw"


@dataclass
class Server:
    """One database, and what its own client can do to it."""

    kind: str
    url: str
    execute: Callable[[str], Any]
    connect: Callable[[], Any]
    restart: Callable[[], None]

    @property
    def waiting(self) -> str:
        """Lists the sessions that wait for a lock of another."""
        if self.kind == "postgresql":
            return "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        return "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"

    def cut(self, session: int) -> None:
        self.execute(f"SELECT pg_terminate_backend({session})" if self.kind == "postgresql" else f"KILL {session}")


@pytest.fixture(params=["postgresql", "mysql"])
def server(request: pytest.FixtureRequest) -> Server:
    if request.param == "postgresql":
        postgres: PostgresServer = request.getfixturevalue("postgres")
        url = request.getfixturevalue("pg_db")

        def execute(statement: str) -> Any:
            with postgres.connect(url) as connection:
                cursor = connection.execute(statement.encode())
                return cursor.fetchall() if cursor.description else []

        return Server(request.param, url, execute, lambda: postgres.connect(url, autocommit=False), postgres.restart)
    mariadb: MariadbServer = request.getfixturevalue("mariadb")
    url = request.getfixturevalue("my_db")
    return Server(
        request.param,
        url,
        lambda statement: mariadb.execute(statement, url),
        lambda: mariadb.connect(url, autocommit=False),
        mariadb.restart,
    )


@pytest.fixture
def store(server: Server) -> Iterator[SqlStore]:
    with closing(SqlStore(server.url)) as store:
        yield store


def test_many_open_an_empty_database_at_once(server: Server) -> None:
    start = threading.Barrier(8)

    def first_call(number: int) -> int:
        with closing(SqlStore(server.url)) as store:
            start.wait()
            return store.save(a_state(f"p{number}")).revision

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(first_call, range(8))) == [1] * 8
    assert server.execute("SELECT format FROM floodmark_meta") in ([(1,)], ((1,),))
    with closing(SqlStore(server.url)) as store:
        assert len(store.list_pipelines()) == 8


def test_tables_that_a_dead_process_left_half_made_are_completed(server: Server, store: SqlStore) -> None:
    """MySQL commits each table by itself."""
    store.get("orders")
    store.close()
    server.execute("DROP TABLE floodmark_runs")
    server.execute("DELETE FROM floodmark_meta")
    store.record_run(a_run(1))
    assert store.runs("orders") == [a_run(1)]
    assert server.execute("SELECT format FROM floodmark_meta") in ([(1,)], ((1,),))
    found = server.execute(
        "SELECT constraint_name FROM information_schema.table_constraints "
        "WHERE table_name = 'floodmark_runs' AND constraint_type = 'UNIQUE' AND constraint_schema IN "
        f"('public', '{urlsplit(server.url).path.strip('/')}')"
    )
    assert [name for (name,) in found] == ["floodmark_runs_newest"]


def test_only_one_of_many_takes_a_lease(server: Server, store: SqlStore) -> None:
    store.holder("t")
    start = threading.Barrier(6)

    def take(number: int) -> int:
        with closing(SqlStore(server.url)) as mine:
            mine.holder("t")
            start.wait()
            try:
                return mine.acquire("t", an_owner(f"r{number}")).epoch
            except LeaseHeld:
                return 0

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(take, range(6))) == [0, 0, 0, 0, 0, 1]


def test_leases_and_runs_know_case_and_spaces(store: SqlStore) -> None:
    for name in ("T", "t", "t "):
        assert store.acquire(name, an_owner()).epoch == 1
        store.record_run(a_run(1, name))
    assert [len(store.runs(name)) for name in ("T", "t", "t ")] == [1, 1, 1]


def test_a_state_may_be_large(store: SqlStore) -> None:
    saved = store.save(a_state(metadata={"filler": "x" * 300_000}))
    assert store.get("orders") == saved


def test_the_longest_name_fits_and_a_longer_one_is_said(store: SqlStore) -> None:
    longest = "\U0001f30a" * LONGEST_NAME
    assert store.save(a_state(longest)).revision == 1
    assert store.acquire(longest, an_owner()).epoch == 1
    store.record_run(a_run(1, longest))
    assert store.list_pipelines() == [longest]
    with pytest.raises(StateError, match="at most 512 characters"):
        store.save(a_state(longest + "x"))
    with pytest.raises(StateError, match="at most 512 characters"):
        store.record_run(a_run(1, longest + "x"))
    with pytest.raises(StateError, match="NUL"):
        store.acquire("a\x00b", an_owner())


def test_a_transaction_that_gave_way_is_done_again(server: Server, store: SqlStore) -> None:
    """A real deadlock: each of two holds what the other wants. The database ends one; it runs again."""
    for name in ("a", "b"):
        store.acquire(name, an_owner())
    both = threading.Barrier(2)
    tries: list[str] = []

    def crossing(first: str, second: str) -> str:
        def work(db: Statements) -> str:
            tries.append(first)
            for name in (first, second):
                db.row(sql.LEASE, db.name(name), lock=True)
                if name == first and tries.count(first) == 1:
                    both.wait(timeout=30)
            return first

        with closing(Database(server.url, timedelta(seconds=30))) as database:
            return database.write(work)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(crossing, ("a", "b"), ("b", "a"))) == ["a", "b"]
    assert len(tries) == 3


def test_a_server_that_was_restarted_is_found_again(server: Server, store: SqlStore) -> None:
    saved = store.save(a_state())
    server.restart()
    assert store.get("orders") == saved
    server.restart()
    assert store.save(saved).revision == 2


def test_a_lock_that_is_never_given_back_is_reported(server: Server, store: SqlStore) -> None:
    saved = store.save(a_state())
    with closing(server.connect()) as other, closing(SqlStore(server.url, wait=timedelta(seconds=1))) as hasty:
        other.cursor().execute("SELECT * FROM floodmark_pipelines FOR UPDATE")
        with pytest.raises(StateError) as caught:
            hasty.save(saved)
        assert caught.value.transient
        assert "another session keeps it locked" in str(caught.value.hint)
        # Readers never wait.
        assert hasty.get("orders") == saved
        other.rollback()
    assert store.save(saved).revision == 2


def test_a_connection_that_is_cut_is_transient_and_changes_nothing(server: Server, store: SqlStore) -> None:
    saved = store.save(a_state())
    with closing(server.connect()) as other, ThreadPoolExecutor(1) as pool:
        other.cursor().execute("SELECT * FROM floodmark_pipelines FOR UPDATE")
        blocked = pool.submit(store.save, saved.but(run_count=99))
        while not (found := server.execute(server.waiting)):
            assert not blocked.done()
        server.cut(found[0][0])
        with pytest.raises(StateError) as caught:
            blocked.result(timeout=30)
        other.rollback()
    assert caught.value.transient
    assert store.get("orders") == saved
    assert store.save(saved).revision == 2


def test_a_role_that_may_only_use_the_tables_is_enough(server: Server, store: SqlStore) -> None:
    saved = store.save(a_state())
    with closing(SqlStore(reader(server, "SELECT, INSERT, UPDATE, DELETE"))) as limited:
        assert limited.save(saved, limited.acquire("t", an_owner())).revision == 2
        limited.record_run(a_run(1))


def test_missing_rights_are_said(server: Server, store: SqlStore) -> None:
    saved = store.save(a_state())
    with closing(SqlStore(reader(server, "SELECT"))) as limited:
        assert limited.get("orders") == saved
        with pytest.raises(StateError, match="denied") as caught:
            limited.save(saved)
    assert "grant" in str(caught.value.hint)
    assert not caught.value.transient
    assert store.get("orders") == saved


def test_a_wrong_password_is_said_and_not_shown(server: Server) -> None:
    with closing(SqlStore(server.url.replace(PASSWORD, "wr0ng-secret"))) as store, pytest.raises(StateError) as caught:
        store.get("orders")
    shown = f"{caught.value.message} {caught.value.hint}"
    assert "password" in shown
    assert "wr0ng-secret" not in shown
    assert caught.value.hint == "check user and password"
    assert not caught.value.transient
    assert "(1045" not in caught.value.message


def test_a_database_that_is_not_there_is_said(server: Server) -> None:
    name = urlsplit(server.url).path
    with closing(SqlStore(server.url.replace(name, "/nowhere"))) as store, pytest.raises(StateError) as caught:
        store.get("orders")
    assert "create the database" in str(caught.value.hint) or "nowhere" in caught.value.message
    assert not caught.value.transient
    assert "(1049" not in caught.value.message


def test_history_is_pruned_per_pipeline(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "KEPT_RUNS", 3)
    store.record_run(a_run(0, "another"))
    for number in range(6):
        store.record_run(a_run(number))
    assert [run.run_id for run in store.runs("orders", limit=100)] == ["r5", "r4", "r3"]
    assert len(store.runs("another")) == 1


def reader(server: Server, rights: str) -> str:
    """The URL of a new role with just these rights on the tables."""
    role = f"role_{urlsplit(server.url).path.strip('/')}"
    if server.kind == "postgresql":
        server.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
        server.execute(f"GRANT {rights} ON ALL TABLES IN SCHEMA public TO {role}")
        server.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}")
    else:
        database = urlsplit(server.url).path.strip("/")
        server.execute(f"CREATE USER '{role}'@'%' IDENTIFIED BY '{PASSWORD}'")
        server.execute(f"GRANT {rights} ON `{database}`.* TO '{role}'@'%'")
    return server.url.replace("//floodmark:", f"//{role}:")
