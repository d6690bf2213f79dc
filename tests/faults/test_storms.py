"""Killed again and again with its JVM while others write, its state's server restarted, its reads cut: ordinary runs
make it good by themselves, and nothing is there twice."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.lab import Kind
from tests.races import By, Mode, RaceLab
from tests.services import PostgresServer
from tests.storm_ends import EndKind, end_of
from tests.storms import Storm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORMS: tuple[tuple[Kind, By, Mode, EndKind], ...] = (
    ("postgres", "sequence", "append", "delta"),
    ("mariadb", "timestamp", "append", "mariadb"),
)
"""Append: what is loaded twice stays there twice. `make soak` has them over every target and in both modes."""


@pytest.fixture(scope="module")
def store() -> Iterator[PostgresServer]:
    """A server for the state alone, which a storm may restart."""
    with PostgresServer() as server:
        yield server


@pytest.mark.parametrize(("kind", "by", "mode", "end"), STORMS)
def test_runs_mend_what_a_storm_of_crashes_left(
    kind: Kind,
    by: By,
    mode: Mode,
    end: EndKind,
    store: PostgresServer,
    tmp_path: Path,
    spark: SparkSession,
    request: pytest.FixtureRequest,
) -> None:
    servers: dict[str, Any] = {
        name: request.getfixturevalue(name) for name in ("postgres", "mariadb") if name in (kind, end)
    }
    root = tmp_path / "project"
    there = end_of(end, root, servers[end].create_database() if end in servers else "")
    lab = RaceLab.into(there, root, kind, servers[kind].create_database(), spark, state=store.create_database())
    seed = random.SystemRandom().randrange(1_000_000)
    survived = Storm(lab, store, by, mode, seed, rounds=2).run()
    print(survived)
    assert survived.difference.none, f"seed {seed}: {survived}"
    assert survived.kills > 0
    assert survived.restarts > 0
    assert survived.written > 100
