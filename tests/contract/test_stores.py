"""The contract suites on every store, and kill -9 on those that write files."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from floodmark.errors import LeaseHeld
from floodmark.model.ledger import PipelineState
from floodmark.model.outcome import TargetState
from floodmark.state.env import EnvStore
from floodmark.state.file import FileStore
from floodmark.state.objects import ObjectStore
from floodmark.state.sql import SqlStore
from floodmark.state.target import TargetStore
from floodmark.testing.store_suite import (
    DurableContract,
    HistoryContract,
    LeaseContract,
    Reopen,
    StateContract,
    a_run,
    a_state,
    an_owner,
)

Durable = FileStore | SqlStore | ObjectStore

STORES = ("file", "sqlite", "postgresql", "mysql", "s3")

KILLS = {"file": 20, "sqlite": 20, "postgresql": 8, "mysql": 8, "s3": 8}


class TestFileStore(StateContract, DurableContract, LeaseContract, HistoryContract):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Reopen:
        return partial(FileStore, tmp_path / "state.json")


class TestSqliteStore(StateContract, DurableContract, LeaseContract, HistoryContract):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Reopen:
        return partial(SqlStore, tmp_path / "new folder" / "state.db")


class TestPostgresStore(StateContract, DurableContract, LeaseContract, HistoryContract):
    @pytest.fixture
    def reopen(self, pg_db: str) -> Reopen:
        return partial(SqlStore, pg_db)


class TestMysqlStore(StateContract, DurableContract, LeaseContract, HistoryContract):
    @pytest.fixture
    def reopen(self, my_db: str) -> Reopen:
        return partial(SqlStore, my_db)


class TestObjectStore(StateContract, DurableContract, LeaseContract, HistoryContract):
    @pytest.fixture
    def reopen(self, s3_bucket: str) -> Reopen:
        return partial(ObjectStore, f"{s3_bucket}/team/state.json")


class TestEnvStore(StateContract):
    """It keeps nothing by itself: what it hands back is in tests/unit/state/test_env_store.py."""

    @pytest.fixture
    def reopen(self) -> Reopen:
        return partial(EnvStore, "FLOODMARK_STATE", {})


class TestTargetStore(StateContract):
    """Nothing has landed yet; what changes once something has is in tests/unit/state/test_target_store.py."""

    @pytest.fixture
    def reopen(self) -> Reopen:
        return partial(TargetStore, lambda _: TargetState(exists=False), ["never ran"])


@pytest.fixture(params=STORES)
def killed(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Callable[[], Durable]]:
    opened: dict[str, Callable[[], Callable[[], Durable]]] = {
        "file": lambda: partial(FileStore, tmp_path / "deep" / "state.json"),
        "sqlite": lambda: partial(SqlStore, tmp_path / "deep" / "state.db"),
        "postgresql": lambda: partial(SqlStore, request.getfixturevalue("pg_db")),
        "mysql": lambda: partial(SqlStore, request.getfixturevalue("my_db")),
        "s3": lambda: partial(ObjectStore, f"{request.getfixturevalue('s3_bucket')}/state.json"),
    }
    return request.param, opened[request.param]()


def hammer(reopen: Callable[[], Durable], acknowledged: Connection) -> None:
    store = reopen()
    held = store.holder("t")
    lease = store.acquire("t", an_owner(), expected=held)
    state = store.get("orders") or a_state(revision=0)
    while True:
        state = store.save(state.but(metadata={"filler": "x" * random.randrange(50_000)}), lease=lease)
        acknowledged.send(state.revision)
        lease = store.beat(lease)
        store.record_run(a_run(state.revision))


def kill_at_random(kind: str, reopen: Callable[[], Durable]) -> int:
    """Returns the last revision that the killed process was told is stored."""
    # Forked where it can be: it starts in milliseconds. The bucket's client has threads, which a fork leaves behind.
    context: Any = multiprocessing.get_context("spawn" if kind == "s3" else "fork")
    receiver, sender = context.Pipe(duplex=False)
    victim = context.Process(target=hammer, args=(reopen, sender))
    victim.start()
    sender.close()
    last = 0
    for _ in range(random.randrange(1, 4)):
        last = receiver.recv()
    receiver.poll(random.random() * 0.02)
    assert victim.pid is not None
    os.kill(victim.pid, signal.SIGKILL)
    victim.join()
    assert victim.exitcode == -signal.SIGKILL
    try:
        while True:
            last = receiver.recv()
    except EOFError:
        return last


def take_over(store: Durable) -> None:
    """A server may still be at work on what the dead process sent last; once the lease is ours, that is over."""
    while True:
        with suppress(LeaseHeld):
            store.acquire("t", an_owner(), expected=store.holder("t"))
            return


def test_kill_9_at_any_moment_leaves_a_whole_state(killed: tuple[str, Callable[[], Durable]], tmp_path: Path) -> None:
    kind, reopen = killed
    seen: PipelineState | None = None
    for _ in range(KILLS[kind]):
        acknowledged = kill_at_random(kind, reopen)
        with closing(reopen()) as store:
            take_over(store)
            state = store.get("orders")
            assert state is not None
            # One more than acknowledged is right too: it was stored, and killed before it could say so.
            assert state.revision in (acknowledged, acknowledged + 1)
            assert seen is None or state.revision > seen.revision
            # The run is recorded after the save; before the first one there is none.
            recorded = [run.run_id for run in store.runs("orders", 1)] or ["r0"]
            assert recorded[0] in (f"r{state.revision}", f"r{state.revision - 1}")
            seen = store.save(state)
            store.record_run(a_run(seen.revision))
    assert seen is not None
    if kind in ("file", "sqlite"):
        leftovers = {path.name for path in (tmp_path / "deep").iterdir()}
        assert leftovers <= {"state.json", "state.json.lock", "state.db"}
