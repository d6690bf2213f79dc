"""Writers that commit late, while the pipeline runs: nothing is lost, stale or doubled. And it is, without the look."""

from __future__ import annotations

import random

import psycopg
import pytest
from tests.lab import Lab, ok
from tests.races import NO_LOOK, By, Difference, Mode, Race, RaceLab, compare


@pytest.fixture
def seed() -> int:
    """Another one each time; a race that was lost says which it had."""
    return random.SystemRandom().randrange(1_000_000)


@pytest.mark.parametrize(("by", "mode"), [("timestamp", "upsert"), ("sequence", "append")])
def test_nothing_is_lost_to_transactions_that_commit_late(race_lab: RaceLab, by: By, mode: Mode, seed: int) -> None:
    outcome = Race(race_lab, by, mode, seed).run()
    print(outcome)
    assert outcome.difference.none, f"seed {seed}: {outcome}"
    assert outcome.written > 30


@pytest.mark.parametrize("by", ["timestamp", "sequence"])
def test_the_same_race_is_lost_without_the_look(race_lab: RaceLab, by: By, seed: int) -> None:
    """Or the test above would prove nothing. One writer holds its transaction across whole runs, so it is certain."""
    outcome = Race(race_lab, by, "append", seed, option=NO_LOOK, seconds=0, hold=True).run()
    print(outcome)
    assert outcome.lost > 0, f"seed {seed}: {outcome}"
    assert outcome.difference.doubled == outcome.difference.ghosts == 0


def test_a_difference_of_each_kind_is_found() -> None:
    source = [(1, "a", "10:00"), (2, "b", "10:00"), (3, "c", "10:00"), (4, "d", "10:00")]
    assert compare(source, source).none
    target = [(1, "a", "10:00"), (1, "a", "10:00"), (2, "b", "09:00"), (3, "old", "10:00"), (5, "e", "10:00")]
    assert compare(source, target) == Difference(missing=1, stale=2, doubled=1, ghosts=1)


def test_an_older_transaction_that_updates_last_has_the_last_word(pg_lab: Lab) -> None:
    """`now()` is when a transaction began, so the last of two updates may well carry the earlier time."""
    pg_lab.execute("INSERT INTO orders VALUES (1, 'first', now())")
    project = pg_lab.project(change="{by: timestamp, column: updated_at}")
    ok(project.run("orders"))
    with psycopg.connect(pg_lab.url) as older:
        older.execute("SELECT now()")
        pg_lab.execute("UPDATE orders SET val = 'second', updated_at = now()")
        ok(project.run("orders"))
        older.execute("UPDATE orders SET val = 'third', updated_at = now()")
    ok(project.run("orders"))
    pg_lab.assert_equal()
