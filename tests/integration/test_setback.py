"""A source that is no longer what it was: another server, an older copy, a clock set back, values below the mark."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.lab import Lab, ok
from tests.late import BY_ID, BY_TIME, add, filled_by_database, until_all_is_in
from tests.services import PostgresServer

from floodmark.errors import Refused
from floodmark.project import Project


def pretend(project: Project, **changes: Any) -> None:
    """What the last run saw of the server was something else."""
    state = project.store.get("orders")
    assert state is not None
    assert state.server is not None
    project.store.save(state.but(server=state.server.but(**changes)))


@pytest.fixture
def world(lab: Lab) -> Lab:
    return filled_by_database(lab)


def loaded_world(world: Lab, mode: str, change: str = BY_ID) -> Project:
    project = world.project(mode=mode, change=change)
    add(world, "one", "two", "three")
    until_all_is_in(project, world)
    return project


CHANGES: list[dict[str, Any]] = [{"identity": "another"}, {"log": 2**60}]


@pytest.mark.parametrize("changes", CHANGES)
def test_another_server_is_read_again_once(world: Lab, changes: dict[str, Any]) -> None:
    """Numbers that a lost primary had handed out are used again by the one that took over."""
    project = loaded_world(world, "upsert")
    world.execute("UPDATE orders SET val = 'other' WHERE id = 2")
    assert ok(project.run("orders")).rows.updated in (0, None), "below the mark nobody looks"
    pretend(project, **changes)
    result = ok(project.run("orders"))
    assert any("read again from" in notice for notice in result.notices)
    world.assert_equal()
    assert ok(project.run("orders")).nothing_new, "once is enough"


@pytest.mark.parametrize("changes", CHANGES)
def test_append_refuses_another_server_and_names_the_ways(world: Lab, changes: dict[str, Any]) -> None:
    project = loaded_world(world, "append")
    pretend(project, **changes)
    failure = project.run("orders").failure
    assert isinstance(failure, Refused)
    assert "state set orders" in (failure.hint or "")
    assert "--full-refresh" in (failure.hint or "")
    state = project.store.get("orders")
    assert state is not None
    project.reset("orders", str(state.mark))
    assert ok(project.run("orders")).nothing_new, "accepted by setting the mark where it was"
    add(world, "four")
    until_all_is_in(project, world)


def test_a_clock_that_was_set_back(world: Lab) -> None:
    """What it writes now lies below the mark that the old one left."""
    project = loaded_world(world, "upsert", BY_TIME)
    state = project.store.get("orders")
    assert state is not None
    assert state.server is not None
    ahead = state.server.clock + timedelta(hours=2)
    shown = ahead.strftime("%Y-%m-%d %H:%M:%S")
    world.execute(f"INSERT INTO orders (val, updated_at) VALUES ('by the fast clock', '{shown}')")
    ok(project.run("orders"))
    # The server has run ahead, and the mark with it; then its clock is put right.
    project.reset("orders", shown)
    ok(project.run("orders"))
    add(world, "by the right clock")
    pretend_seen = project.store.get("orders")
    assert pretend_seen is not None
    assert pretend_seen.server is not None
    pretend(project, clock=ahead)
    result = ok(project.run("orders"))
    assert any("clock was set back" in notice for notice in result.notices)
    world.assert_equal()


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_values_below_the_mark_are_refused_with_the_choices(world: Lab, mode: str) -> None:
    project = loaded_world(world, mode)
    world.execute("DELETE FROM orders WHERE id > 1")
    failure = project.run("orders").failure
    assert isinstance(failure, Refused)
    assert "below the mark" in failure.message
    for choice in ("--full-refresh", "state set orders", "backwards: accept"):
        assert choice in (failure.hint or "")
    accepted = world.project(mode=mode, change=BY_ID.replace("wait", "backwards: accept, wait"))
    assert ok(accepted.run("orders")).nothing_new
    refreshed = world.project(mode=mode, change=BY_ID)
    ok(refreshed.run("orders", full_refresh=True))
    world.assert_equal()


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_refusal_stays_until_it_is_answered_however_far_the_source_has_grown(world: Lab, mode: str) -> None:
    """Or the rows that were written below the mark meanwhile would be nobody's."""
    project = loaded_world(world, mode)
    world.execute("DELETE FROM orders WHERE id > 1")
    assert isinstance(project.run("orders").failure, Refused)
    world.execute("INSERT INTO orders (id, val) VALUES (2, 'anew'), (3, 'anew'), (40, 'beyond the mark')")
    refused = project.run("orders").failure
    assert isinstance(refused, Refused)
    assert "was, when a run last refused, 1, below the mark" in refused.message
    with pytest.raises(Refused):
        project.plan("orders")
    project.set_mark("orders", "1")
    until_all_is_in(project, world)


def test_a_mark_that_was_set_ahead_on_purpose_is_no_sign_of_trouble(world: Lab) -> None:
    project = loaded_world(world, "upsert")
    project.reset("orders", "1000")
    assert ok(project.run("orders")).nothing_new


def test_an_empty_table_is_no_sign_of_trouble(world: Lab) -> None:
    project = loaded_world(world, "upsert")
    world.execute("DELETE FROM orders")
    assert ok(project.run("orders")).nothing_new


def test_a_real_promotion_changes_the_timeline(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> None:
    from tests.standby import StandbyServer

    with PostgresServer() as primary, StandbyServer(primary) as standby:
        folder = tmp_path_factory.mktemp("p")
        lab = filled_by_database(Lab(folder, "postgres", primary.create_database(), spark))
        project = lab.project(mode="upsert", change=BY_TIME)
        add(lab, "one", "two")
        until_all_is_in(project, lab)
        standby.has_replayed(primary)
        project.close()
        primary.stop()
        standby.promote()
        lab.url = standby.url(lab.url.rpartition("/")[2])
        with psycopg.connect(lab.url, autocommit=True) as connection:
            connection.execute("UPDATE orders SET val = 'lost on the way' WHERE id = 1")
        project = lab.project(mode="upsert", change=BY_TIME)
        result = ok(project.run("orders"))
        assert any("server has changed" in notice for notice in result.notices)
        lab.assert_equal()
        project.close()
