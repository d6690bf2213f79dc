"""State in a variable: what is handed back, and what becomes of a value that nobody can read."""

from __future__ import annotations

import json

import pytest

from floodmark.errors import StateConflict, StateError
from floodmark.model.lease import Lease
from floodmark.model.ledger import FORMAT, PipelineState
from floodmark.model.position import Position
from floodmark.model.window import Window
from floodmark.ports import HandsBack, SupportsHistory, SupportsLeases
from floodmark.state.env import KEPT_WINDOWS, EnvStore
from floodmark.stores import export_state, import_state
from floodmark.testing.store_suite import a_state, an_owner

NAME = "FLOODMARK_STATE"


def test_what_one_process_hands_back_the_next_goes_on_from() -> None:
    first = EnvStore(NAME, {})
    assert first.to_keep() == {}
    saved = first.save(a_state())
    other = first.save(a_state("größe"))
    second = EnvStore(NAME, first.to_keep())
    assert (second.get("orders"), second.get("größe")) == (saved, other)
    with pytest.raises(StateConflict):
        second.save(a_state())
    assert second.save(saved.but(run_count=9)).revision == saved.revision + 1


def test_nothing_is_handed_back_when_nothing_changed() -> None:
    kept = {NAME: json.dumps(export_state(_store_of(a_state())))}
    store = EnvStore(NAME, kept)
    assert store.get("orders") is not None
    assert store.delete("nobody") is False
    assert store.to_keep() == {}
    assert store.delete("orders") is True
    assert EnvStore(NAME, store.to_keep()).list_pipelines() == []


def test_the_value_is_one_line_and_what_state_export_writes() -> None:
    store = _store_of(a_state())
    value = store.to_keep()[NAME]
    assert value.isascii()
    assert "\n" not in value
    assert json.loads(value) == export_state(store)
    other = EnvStore(NAME, {})
    assert import_state(other, json.loads(value)) == ["orders"]


def test_the_value_stays_short_and_the_mark_right() -> None:
    """A variable ends at 128 KiB; fifty pipelines with a full ledger each stay below."""
    windows = tuple(
        Window(
            after=Position.before(n) if n else None,
            until=Position.before(n + 1),
            state="committed",
            batch=f"{n:016x}",
            ordinal=n + 1,
            rows=1,
        )
        for n in range(64)
    )
    store = _store_of(*(PipelineState(pipeline=f"p{n}", windows=windows) for n in range(50)))
    value = store.to_keep()[NAME]
    assert len(value) < 128 * 1024
    read = EnvStore(NAME, {NAME: value}).get("p7")
    assert read is not None
    assert len(read.windows) == KEPT_WINDOWS
    assert read.mark == Position.before(64)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("no json", "is damaged: it is not JSON"),
        ('{"format": 1', "is damaged: it is not JSON"),
        ("[]", "holds no map of pipelines"),
        ('{"format": 1, "pipelines": {"a": {"format": 1}}}', "is damaged"),
        (json.dumps({"format": FORMAT + 1, "pipelines": {}}), "newer Floodmark"),
    ],
)
def test_a_bad_value_is_named_and_never_taken_for_an_empty_one(value: str, words: str) -> None:
    store = EnvStore(NAME, {NAME: value})
    with pytest.raises(StateError, match=words) as caught:
        store.get("orders")
    assert NAME in caught.value.message
    with pytest.raises(StateError):
        store.save(a_state())
    assert store.to_keep() == {}


@pytest.mark.parametrize("environ", [{}, {NAME: ""}, {NAME: "  "}])
def test_an_empty_or_missing_variable_is_an_empty_store(environ: dict[str, str]) -> None:
    assert EnvStore(NAME, environ).list_pipelines() == []


def test_its_capabilities_are_its_type() -> None:
    store = EnvStore(NAME, {})
    assert isinstance(store, HandsBack)
    assert not isinstance(store, SupportsLeases)
    assert not isinstance(store, SupportsHistory)
    with pytest.raises(StateError, match="no leases"):
        store.save(a_state(), Lease(resource="t", owner=an_owner(), epoch=1))


def test_metadata_without_a_json_form_is_refused() -> None:
    store = EnvStore(NAME, {})
    with pytest.raises(StateError, match="JSON"):
        store.save(a_state(metadata={"bad": object()}))
    assert store.get("orders") is None


def _store_of(*states: PipelineState) -> EnvStore:
    store = EnvStore(NAME, {})
    for state in states:
        store.save(state)
    return store
