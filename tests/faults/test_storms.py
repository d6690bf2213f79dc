"""Killed again and again with its JVM while others write, its state's server restarted, its reads cut: ordinary runs
make it good by themselves, and nothing is there twice."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from tests.races import By, RaceLab
from tests.services import PostgresServer
from tests.storms import Storm

CURSOR: dict[str, By] = {"postgres": "sequence", "mariadb": "timestamp"}
"""Append on both: what is loaded twice stays there twice."""


@pytest.fixture(scope="module")
def store() -> Iterator[PostgresServer]:
    """A server for the state alone, which a storm may restart."""
    with PostgresServer() as server:
        yield server


def test_runs_mend_what_a_storm_of_crashes_left(race_lab: RaceLab, store: PostgresServer) -> None:
    race_lab.state = store.create_database()
    seed = random.SystemRandom().randrange(1_000_000)
    survived = Storm(race_lab, store, CURSOR[race_lab.kind], "append", seed, rounds=2).run()
    print(survived)
    assert survived.difference.none, f"seed {seed}: {survived}"
    assert survived.kills > 0
    assert survived.restarts > 0
    assert survived.written > 100
