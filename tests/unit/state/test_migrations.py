"""From one stored format to the next, on every store. There is no format 2 yet, so the step is a fake."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from floodmark.errors import StateError
from floodmark.model import ledger
from floodmark.state import form
from floodmark.state.env import EnvStore
from floodmark.state.file import FileStore
from floodmark.state.objects import ObjectStore
from floodmark.state.sql import SqlStore
from floodmark.stores import export_state, import_state
from floodmark.testing.store_suite import a_run, a_state, an_owner

Open = Callable[[], Any]


@pytest.fixture(params=["file", "sqlite", "postgresql", "mysql", "s3"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    made: dict[str, Open] = {
        "file": lambda: FileStore(tmp_path / "state.json"),
        "sqlite": lambda: SqlStore(tmp_path / "state.db"),
        "postgresql": lambda: SqlStore(request.getfixturevalue("pg_db")),
        "mysql": lambda: SqlStore(request.getfixturevalue("my_db")),
        "s3": lambda: ObjectStore(f"{request.getfixturevalue('s3_bucket')}/state.json"),
    }
    return made[request.param]


def in_format_2(patch: pytest.MonkeyPatch) -> None:
    """Format 2 keeps the owner beside the metadata rather than in it."""

    def step(old: dict[str, Any]) -> dict[str, Any]:
        return {**old, "metadata": {"owner": old["metadata"]["owner"], "since": "format 2"}}

    patch.setattr(ledger, "FORMAT", 2)
    patch.setitem(form.MIGRATIONS, 1, step)


def test_an_older_state_is_read_at_once_and_rewritten_by_the_next_save(
    reopen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(reopen()) as old:
        for name in ("orders", "events"):
            old.save(a_state(name))
        old.record_run(a_run(1))
        old.release(old.acquire("t", an_owner()))
    with monkeypatch.context() as patch:
        in_format_2(patch)
        with closing(reopen()) as new:
            state = new.get("orders")
            assert state == a_state(revision=1, metadata={"owner": "Zoë", "since": "format 2"})
            assert new.runs("orders") == [a_run(1)]
            # The epoch goes on rising: a runner of the old version stays fenced.
            assert new.acquire("t", an_owner()).epoch == 2
    with closing(reopen()) as old:
        # Reading has changed nothing: the older Floodmark still works.
        assert old.get("orders") == a_state(revision=1)
    with monkeypatch.context() as patch:
        in_format_2(patch)
        with closing(reopen()) as new:
            saved = new.save(state)
            assert new.get("orders") == saved
            assert export_state(new)["format"] == 2
            # The other one is still in format 1 there, and is read as before.
            assert new.get("events").metadata["since"] == "format 2"
    with closing(reopen()) as old:
        actions: list[Callable[[], object]] = [lambda: old.get("orders"), lambda: old.acquire("t", an_owner())]
        for action in actions:
            with pytest.raises(StateError, match="newer Floodmark"):
                action()


def test_an_export_and_a_variable_of_the_old_format_are_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = EnvStore("S", {})
    old.save(a_state())
    exported, kept = export_state(old), old.to_keep()
    in_format_2(monkeypatch)
    store = FileStore(tmp_path / "state.json")
    import_state(store, exported)
    read = EnvStore("S", kept).get("orders")
    assert read is not None
    assert (read.metadata["since"], store.get("orders")) == ("format 2", read.but(revision=1))


def test_steps_are_taken_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    in_format_2(monkeypatch)
    monkeypatch.setattr(ledger, "FORMAT", 3)
    monkeypatch.setitem(
        form.MIGRATIONS, 2, lambda old: {**old, "metadata": {**old["metadata"], "then": old["metadata"]["since"]}}
    )
    state = form.to_state({**a_state().to_dict(), "format": 1}, "here")
    assert state.metadata == {"owner": "Zoë", "since": "format 2", "then": "format 2"}


def test_a_state_that_a_step_can_not_take_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    in_format_2(monkeypatch)
    with pytest.raises(StateError, match="here is damaged: it can't be brought from format 1 to 2"):
        form.to_state({"format": 1, "pipeline": "orders"}, "here")


def test_there_is_a_step_from_every_format_to_the_next() -> None:
    assert sorted(form.MIGRATIONS) == list(range(1, ledger.FORMAT))
