"""What is special about the file: damage, rights, locks and what a dead process leaves."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path

import pytest

from floodmark.errors import StateError
from floodmark.model.ledger import FORMAT
from floodmark.state.document import KEPT_RUNS
from floodmark.state.file import FileStore
from floodmark.testing.store_suite import a_run, a_state, an_owner


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


@pytest.fixture
def store(path: Path) -> FileStore:
    return FileStore(path, wait=timedelta(milliseconds=50))


def whole() -> dict[str, object]:
    return {"format": FORMAT, "pipelines": {"orders": a_state().to_dict()}, "leases": {}, "runs": {}}


DAMAGE = {
    "empty": b"",
    "cut off": json.dumps(whole()).encode()[:-40],
    "no JSON": b"\x00\x01 not json",
    "no UTF-8": b'{"format": 1, "x": "\xff\xfe"}',
    "a list": b"[]",
    "nothing in it": b"{}",
    "no format": json.dumps({**whole(), "format": None}).encode(),
    "format zero": json.dumps({**whole(), "format": 0}).encode(),
    "no leases": json.dumps({**whole(), "leases": []}).encode(),
    "runs in a map": json.dumps({**whole(), "runs": {"orders": {}}}).encode(),
    "state in a list": json.dumps({**whole(), "pipelines": {"orders": []}}).encode(),
    "bad position": json.dumps(
        {**whole(), "pipelines": {"orders": {**a_state().to_dict(), "start": {"date": 1}}}}
    ).encode(),
}


@pytest.mark.parametrize("content", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_named_and_left_alone(path: Path, store: FileStore, content: bytes) -> None:
    path.write_bytes(content)
    actions: list[Callable[[], object]] = [lambda: store.get("orders"), lambda: store.save(a_state())]
    for action in actions:
        with pytest.raises(StateError, match=r"state\.json is damaged") as caught:
            action()
        assert caught.value.hint is not None
        assert "move it away" in caught.value.hint
    assert path.read_bytes() == content


@pytest.mark.parametrize("inner", [False, True], ids=["the file", "one state in it"])
def test_a_newer_format_is_refused_and_left_alone(path: Path, store: FileStore, inner: bool) -> None:
    newer = {"format": FORMAT + 1}
    form = {**whole(), "pipelines": {"orders": {**a_state().to_dict(), **newer}}} if inner else {**whole(), **newer}
    path.write_text(json.dumps(form))
    actions: list[Callable[[], object]] = [lambda: store.get("orders"), lambda: store.save(a_state())]
    for action in actions:
        with pytest.raises(StateError, match="newer Floodmark"):
            action()
    assert json.loads(path.read_text()) == form


def test_a_write_protected_file_can_be_read_and_is_never_replaced(
    open_folder: Path, without_rights: Callable[[], AbstractContextManager[None]]
) -> None:
    store = FileStore(open_folder / "state.json")
    saved = store.save(a_state())
    (open_folder / "state.json").chmod(0o444)
    (open_folder / "state.json.lock").chmod(0o666)
    with without_rights():
        with pytest.raises(StateError, match="write-protected") as caught:
            store.save(saved)
        assert store.get("orders") == saved
    assert str(open_folder) in f"{caught.value} {caught.value.hint}"


def test_a_folder_without_rights(open_folder: Path, without_rights: Callable[[], AbstractContextManager[None]]) -> None:
    open_folder.chmod(0o555)
    with without_rights(), pytest.raises(StateError, match="Permission denied"):
        FileStore(open_folder / "state.json").save(a_state())


def test_an_unreadable_file(open_folder: Path, without_rights: Callable[[], AbstractContextManager[None]]) -> None:
    path = open_folder / "state.json"
    FileStore(path).save(a_state())
    path.chmod(0o000)
    with without_rights(), pytest.raises(StateError, match="can't be read"):
        FileStore(path).get("orders")


def test_a_folder_in_the_place_of_the_file(path: Path, store: FileStore) -> None:
    path.mkdir()
    with pytest.raises(StateError, match="can't be read"):
        store.get("orders")


def test_a_full_disk_leaves_the_old_file(path: Path, store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = store.save(a_state())

    def no_space(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        with pytest.raises(StateError, match="No space left"):
            store.save(saved.but(run_count=99))
    assert store.get("orders") == saved
    assert sorted(os.listdir(path.parent)) == ["state.json", "state.json.lock"]


def test_what_a_dead_process_left_is_cleaned_up(path: Path, store: FileStore) -> None:
    path.with_name("state.json.new").write_bytes(b"half a fi")
    store.save(a_state())
    assert sorted(os.listdir(path.parent)) == ["state.json", "state.json.lock"]


def test_a_lock_that_is_never_given_back_is_reported(path: Path, store: FileStore) -> None:
    store.save(a_state())
    with open(path.with_name("state.json.lock")) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StateError, match="locked for") as caught:
            store.save(a_state("another"))
        # Readers never wait.
        assert store.get("orders") is not None
    assert "fuser" in str(caught.value.hint)


def test_reading_writes_nothing(path: Path, store: FileStore) -> None:
    assert store.get("orders") is None
    assert (store.holder("t"), store.runs("orders"), store.list_pipelines()) == (None, [], [])
    assert os.listdir(path.parent) == []


def test_a_change_that_changes_nothing_does_not_write(path: Path, store: FileStore) -> None:
    store.release(store.acquire("t", an_owner()))
    before = path.stat().st_ino
    assert store.delete("nobody") is False
    assert path.stat().st_ino == before


def test_a_link_stays_a_link_and_rights_stay(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.json"
    FileStore(real).save(a_state())
    real.chmod(0o640)
    path.symlink_to(real)
    store = FileStore(path)
    store.save(a_state("another"))
    assert path.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert FileStore(real).list_pipelines() == ["another", "orders"]


def test_only_the_newest_runs_are_kept(path: Path, store: FileStore) -> None:
    runs = {"orders": [a_run(n).to_dict() for n in range(KEPT_RUNS)]}
    path.write_text(json.dumps({**whole(), "runs": runs}))
    store.record_run(a_run(KEPT_RUNS))
    kept = store.runs("orders", limit=KEPT_RUNS + 5)
    assert [kept[0].run_id, kept[-1].run_id, len(kept)] == [f"r{KEPT_RUNS}", "r1", KEPT_RUNS]
