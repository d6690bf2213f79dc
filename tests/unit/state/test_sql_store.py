"""What is special about the SQL store: damage, versions, rights, waiting, pruning and passwords."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from datetime import timedelta
from pathlib import Path
from threading import Thread

import pytest

from floodmark.errors import ConfigError, FloodmarkError, StateError
from floodmark.model.ledger import FORMAT
from floodmark.state import sql
from floodmark.state.sql import SqlStore
from floodmark.testing.store_suite import a_run, a_state, an_owner


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqlStore]:
    with closing(SqlStore(path, wait=timedelta(milliseconds=50))) as store:
        yield store


def test_the_folder_is_made_and_the_file_is_in_wal_mode(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "state.db"
    with closing(SqlStore(f"sqlite:///{path}")) as store:
        store.save(a_state())
        with closing(sqlite3.connect(path)) as plain:
            assert plain.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert plain.execute("SELECT format FROM floodmark_meta").fetchall() == [(FORMAT,)]
            assert plain.execute("SELECT name, revision FROM floodmark_pipelines").fetchall() == [("orders", 1)]


def test_opening_happens_at_the_first_call(tmp_path: Path) -> None:
    SqlStore(tmp_path / "a" / "state.db").close()
    assert list(tmp_path.iterdir()) == []


def test_closed_stores_open_again(store: SqlStore) -> None:
    saved = store.save(a_state())
    store.close()
    assert store.get("orders") == saved


@pytest.mark.parametrize("content", [b"this is no database, " * 50, b"SQLite format 3\x00" + b"\xff" * 4000])
def test_a_damaged_file_is_named_and_left_alone(path: Path, store: SqlStore, content: bytes) -> None:
    path.write_bytes(content)
    actions: list[Callable[[], object]] = [lambda: store.get("orders"), lambda: store.save(a_state())]
    for action in actions:
        with pytest.raises(StateError, match=r"state\.db is damaged") as caught:
            action()
        assert "move it away" in str(caught.value.hint)
    assert path.read_bytes() == content


def test_damage_in_the_middle(path: Path, store: SqlStore) -> None:
    for number in range(40):
        store.save(a_state(f"p{number}"))
    store.close()
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xaa" * (len(content) - 4096))
    with pytest.raises(StateError, match=r"state\.db is damaged"):
        store.list_pipelines()


def test_a_body_that_is_no_state(path: Path, store: SqlStore) -> None:
    store.save(a_state())
    with closing(sqlite3.connect(path)) as plain, plain:
        plain.execute('UPDATE floodmark_pipelines SET body = \'{"format": 1, "pipe\'')
    with pytest.raises(StateError, match=r"state\.db is damaged: it is not JSON"):
        store.get("orders")


def test_a_newer_format_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as plain, plain:
        plain.execute("CREATE TABLE floodmark_meta (format INTEGER)")
        plain.execute("INSERT INTO floodmark_meta VALUES (?)", [FORMAT + 1])
    before = path.read_bytes()
    store = SqlStore(path)
    actions: list[Callable[[], object]] = [lambda: store.get("orders"), lambda: store.save(a_state())]
    for action in actions:
        with pytest.raises(StateError, match="newer Floodmark"):
            action()
    assert path.read_bytes() == before


@pytest.mark.parametrize(("file", "folder"), [(0o444, 0o555), (0o666, 0o555), (0o000, 0o777)])
def test_missing_rights_are_reported_with_the_file(
    open_folder: Path, without_rights: Callable[[], AbstractContextManager[None]], file: int, folder: int
) -> None:
    path = open_folder / "state.db"
    with closing(SqlStore(path)) as store:
        store.save(a_state())
    path.chmod(file)
    open_folder.chmod(folder)
    with without_rights(), closing(SqlStore(path)) as store, pytest.raises(StateError, match=str(path)) as caught:
        store.save(a_state("another"))
    assert "rights" in str(caught.value.hint)


def test_a_folder_that_can_not_be_made(store: SqlStore, path: Path) -> None:
    path.write_text("a file, not a folder")
    with pytest.raises(StateError, match="can't be opened"):
        SqlStore(path / "state.db").get("orders")


def test_a_writer_that_never_ends_is_reported(path: Path, store: SqlStore) -> None:
    saved = store.save(a_state())
    with closing(sqlite3.connect(path, isolation_level=None)) as plain:
        plain.execute("BEGIN IMMEDIATE")
        with pytest.raises(StateError, match="locked") as caught:
            store.save(saved)
        # Readers never wait.
        assert store.get("orders") == saved
    assert "another process" in str(caught.value.hint)


def test_a_failed_save_leaves_nothing_of_itself(path: Path, store: SqlStore) -> None:
    lease = store.acquire("t", an_owner())
    store.release(lease)
    with pytest.raises(FloodmarkError):
        store.save(a_state(), lease=lease)
    # No transaction was left open that would shut the next writer out.
    assert store.save(a_state()).revision == 1


def test_threads_share_one_store(path: Path) -> None:
    with closing(SqlStore(path)) as store:
        lease = store.acquire("t", an_owner())
        threads = [Thread(target=lambda: [store.beat(lease) for _ in range(10)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        holder = store.holder("t")
    assert holder is not None
    assert holder.beat == 40


def test_history_is_pruned_per_pipeline(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "KEPT_RUNS", 5)
    store.record_run(a_run(0, "another"))
    for number in range(12):
        store.record_run(a_run(number))
    assert [run.run_id for run in store.runs("orders", limit=100)] == ["r11", "r10", "r9", "r8", "r7"]
    assert len(store.runs("another")) == 1


def test_a_password_is_never_shown() -> None:
    pytest.importorskip("psycopg")
    store = SqlStore("postgresql+psycopg://etl:s3cret@127.0.0.1:1/state?connect_timeout=2")
    with pytest.raises(StateError) as caught:
        store.get("orders")
    shown = f"{caught.value} {caught.value.hint} {caught.value.__cause__}"
    assert "s3cret" not in shown
    assert "etl:***@127.0.0.1" in shown


def test_a_url_that_can_not_be_read_is_not_quoted() -> None:
    with pytest.raises(ConfigError) as caught:
        SqlStore("etl:s3cret@host")
    assert "s3cret" not in f"{caught.value} {caught.value.hint}"
    assert caught.value.__cause__ is None
