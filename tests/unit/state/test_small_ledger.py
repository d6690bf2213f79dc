"""A million windows behind: what is stored stays as small as after a few. What it costs is in benchmarks/ledger.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.mariadb import MariadbServer
from tests.objects import S3Server
from tests.services import PostgresServer

from floodmark.model.ledger import Intent, PipelineState, begin, settle
from floodmark.model.position import Position
from floodmark.model.window import KEPT_WINDOWS, Window, fold
from floodmark.state import document, sql
from floodmark.state.env import EnvStore
from floodmark.state.file import FileStore
from floodmark.state.objects import ObjectStore
from floodmark.state.sql import SqlStore
from floodmark.testing.store_suite import a_run

AT = datetime(2026, 1, 1, tzinfo=UTC)
MILLION = 1_000_000
CHUNK = 1000

Sizes = Callable[[], int]


def intent_for(number: int) -> Intent:
    after = Position.before(number) if number else None
    until = Position.before(number + 1)
    return Intent(batch=f"{number:016x}", ordinal=number + 1, after=after, until=until, mark=until)


def a_window(number: int) -> Window:
    intent = intent_for(number)
    return Window(
        after=intent.after,
        until=intent.until,
        state="committed",
        batch=intent.batch,
        ordinal=intent.ordinal,
        rows=100,
        at=AT,
    )


def commit(store: Any, state: PipelineState, number: int) -> PipelineState:
    intent = intent_for(number)
    announced = store.save(begin(state, intent))
    saved: PipelineState = store.save(settle(announced, intent, version=number, table_id="t", rows=100, at=AT))
    return saved


def test_folding_what_was_folded_is_what_settling_one_by_one_does() -> None:
    """So a million windows may be folded in a thousand strokes."""
    state = PipelineState(pipeline="p")
    for number in range(300):
        state = settle(state, intent_for(number), version=None, table_id=None, rows=100, at=AT)
    hundreds = tuple(w for n in range(0, 300, 100) for w in fold(tuple(map(a_window, range(n, n + 100)))))
    assert fold(hundreds) == state.windows


@pytest.fixture(scope="module")
def million() -> PipelineState:
    thousand = tuple(
        a_window(end - 1).but(
            after=Position.before(end - CHUNK) if end > CHUNK else None, rows=100 * CHUNK, folded=CHUNK - 1
        )
        for end in range(CHUNK, MILLION - CHUNK + 1, CHUNK)
    )
    last = tuple(map(a_window, range(MILLION - CHUNK, MILLION)))
    state = PipelineState(pipeline="p", windows=fold(thousand + last))
    assert len(state.windows) == KEPT_WINDOWS
    assert state.mark == Position.before(MILLION)
    assert sum(w.folded + 1 for w in state.windows) == MILLION
    assert sum(w.rows or 0 for w in state.windows) == 100 * MILLION
    return state


@pytest.fixture(params=["file", "sqlite", "postgresql", "mysql", "s3", "env"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Sizes]:
    """A store, and the bytes that it keeps of all pipelines."""
    query = "SELECT sum(length(body)) FROM floodmark_pipelines"
    if request.param == "file":
        return FileStore(tmp_path / "state.json"), lambda: (tmp_path / "state.json").stat().st_size
    if request.param == "sqlite":
        store = SqlStore(tmp_path / "state.db")
        return store, lambda: int(store._database.read(lambda db: db.value(query)))
    if request.param == "postgresql":
        postgres: PostgresServer = request.getfixturevalue("postgres")
        url = request.getfixturevalue("pg_db")
        return SqlStore(url), lambda: int(postgres.connect(url).execute(query).fetchall()[0][0])
    if request.param == "mysql":
        mariadb: MariadbServer = request.getfixturevalue("mariadb")
        my_url = request.getfixturevalue("my_db")
        return SqlStore(my_url), lambda: int(mariadb.execute(query, my_url)[0][0])
    if request.param == "s3":
        s3: S3Server = request.getfixturevalue("s3")
        bucket = request.getfixturevalue("s3_bucket")
        path = f"{urlsplit(bucket).netloc}/state.json"
        return ObjectStore(f"{bucket}/state.json"), lambda: len(s3.request("GET", path)[1])
    variable = EnvStore("S", {})
    return variable, lambda: len(json.dumps(variable.to_keep()))


def test_a_million_windows_store_no_more_than_a_few(stored: tuple[Any, Sizes], million: PipelineState) -> None:
    store, size = stored
    with closing(store):
        state = PipelineState(pipeline="p")
        for number in range(KEPT_WINDOWS + 1):
            state = commit(store, state, number)
        few = size()
        state = store.save(million.but(revision=state.revision))
        sizes = []
        for number in range(MILLION, MILLION + 30):
            state = commit(store, state, number)
            sizes.append(size())
        # Digits of larger numbers are all that is added: in each window, and in the intent and the head.
        assert max(sizes) < 1.2 * few
        assert sizes[-1] <= sizes[KEPT_WINDOWS] + 8
        assert len(state.windows) == KEPT_WINDOWS
        assert store.get("p").mark == Position.before(MILLION + 30)


def test_the_history_stays_small_too(stored: tuple[Any, Sizes], monkeypatch: pytest.MonkeyPatch) -> None:
    store, _ = stored
    if isinstance(store, EnvStore):
        assert not hasattr(store, "record_run")
        return
    monkeypatch.setattr(sql, "KEPT_RUNS", 10)
    monkeypatch.setattr(document, "KEPT_RUNS", 10)
    with closing(store):
        if isinstance(store, ObjectStore):
            store._kept_runs = 10
        for number in range(25):
            store.record_run(a_run(number))
        assert [run.run_id for run in store.runs("orders", 100)] == [f"r{n}" for n in range(24, 14, -1)]
