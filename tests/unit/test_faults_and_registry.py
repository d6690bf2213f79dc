"""Faults parse or explain themselves; components are found by name, and a missing extra names its pip command."""

from __future__ import annotations

import pytest

import floodmark
from floodmark.errors import ConfigError, MissingExtra, StateError
from floodmark.registry import Registry
from floodmark.testing.faults import FaultPlan, step_names


class Store:
    def __init__(self) -> None:
        self.saved = 0

    def save(self) -> int:
        self.saved += 1
        return self.saved


def test_a_fault_strikes_at_its_call_only() -> None:
    plan = FaultPlan.of("store.save#2:before=error")
    store = plan.faulty("store", Store)()
    assert store.save() == 1
    with pytest.raises(StateError, match=r"store.save \(before\)"):
        store.save()
    assert store.saved == 1
    assert store.save() == 2


def test_after_means_that_it_was_done() -> None:
    store = FaultPlan.of("store.save:after=error").faulty("store", Store)()
    with pytest.raises(StateError):
        store.save()
    assert store.saved == 1


@pytest.mark.parametrize("text", ["target.load=kill", "target.dance:after=kill", "store.save:after=explode", "x"])
def test_a_fault_that_means_nothing_lists_the_steps(text: str) -> None:
    with pytest.raises(ValueError, match=r"STEP\[#N\]:WHEN=ACTION; steps: .*target.load"):
        FaultPlan.of(text)
    assert "source.look" in step_names()


def test_an_unknown_component_lists_the_known() -> None:
    with pytest.raises(ConfigError, match="unknown source 'oracle'") as error:
        Registry.default().get("source", "oracle")
    assert error.value.hint == "known: delta, iceberg, jdbc, mariadb, mysql, postgres, sqlite"


def test_a_missing_extra_names_its_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry({"source.pg": "psycopg.no_such_module:Thing"})
    with pytest.raises(MissingExtra) as error:
        registry.get("source", "pg")
    assert error.value.hint == "pip install 'floodmark[postgres]'"


def test_public_names_are_there_and_sorted() -> None:
    assert floodmark.__all__ == sorted(floodmark.__all__)
    for name in floodmark.__all__:
        assert getattr(floodmark, name) is not None
    with pytest.raises(AttributeError):
        _ = floodmark.nonsense
