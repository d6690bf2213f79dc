"""A real streaming standby as source: never fenced, unless the primary may be asked and has been caught up with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.lab import Lab, ok
from tests.late import BY_ID, BY_TIME, NEW, add, filled_by_database, session, until_all_is_in
from tests.services import PostgresServer
from tests.standby import StandbyServer

from floodmark.errors import SourceError


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[PostgresServer, StandbyServer]]:
    with PostgresServer() as primary, StandbyServer(primary) as standby:
        yield primary, standby


@pytest.fixture
def world(servers: tuple[PostgresServer, StandbyServer], tmp_path: Any, spark: Any) -> Lab:
    """Its `url` is the primary's: the tests write there."""
    return filled_by_database(Lab(tmp_path / "project", "postgres", servers[0].create_database(), spark))


def read_from(lab: Lab, standby: StandbyServer, change: str, *, fence_url: str | None) -> Any:
    """The project reads the standby; the lab goes on writing to the primary."""
    path = lab.write(mode="append", change=change)
    replica = standby.url(lab.url.rpartition("/")[2])
    fence = "" if fence_url is None else f', fence_url: "{fence_url}"'
    path.write_text(path.read_text().replace(f'url: "{lab.url}"', f'url: "{replica}"{fence}'))
    return lab.load()


def test_a_standby_alone_is_never_fenced(world: Lab, servers: tuple[PostgresServer, StandbyServer]) -> None:
    servers[1].has_replayed(servers[0])
    guarantee = read_from(world, servers[1], BY_TIME, fence_url=None).plan("orders").guarantee
    assert guarantee.name == "delayed"
    assert "this is a replica" in guarantee.reason
    assert "fence_url" in guarantee.fix


@pytest.mark.parametrize("change", [BY_TIME, BY_ID])
def test_with_the_primary_asked_a_late_commit_is_not_lost(
    world: Lab, servers: tuple[PostgresServer, StandbyServer], change: str
) -> None:
    primary, standby = servers
    project = read_from(world, standby, change.replace("100ms", "3s"), fence_url=world.url)
    with session(world) as late:
        late.execute("BEGIN")
        late.execute(NEW.format("late").encode())
        add(world, "newer")
        standby.has_replayed(primary)
        result = ok(project.run("orders"))
        assert (result.guarantee, result.rows_waiting) == ("fenced", 1)
        late.execute("COMMIT")
    standby.has_replayed(primary)
    until_all_is_in(project, world)


def test_a_standby_that_lags_proves_nothing_yet(world: Lab, servers: tuple[PostgresServer, StandbyServer]) -> None:
    """The writer has ended on the primary; what it wrote is not here yet, and the mark must not pass it."""
    primary, standby = servers
    project = read_from(world, standby, BY_ID, fence_url=world.url)
    with session(world) as late:
        late.execute("BEGIN")
        late.execute(NEW.format("late").encode())
        add(world, "newer")
        standby.has_replayed(primary)
        standby.pause()
        try:
            late.execute("COMMIT")
            assert ok(project.run("orders")).rows_waiting == 1
        finally:
            standby.resume()
    standby.has_replayed(primary)
    until_all_is_in(project, world)


def test_the_wrong_primary_is_refused(
    world: Lab, servers: tuple[PostgresServer, StandbyServer], postgres: PostgresServer
) -> None:
    servers[1].has_replayed(servers[0])
    project = read_from(world, servers[1], BY_TIME, fence_url=postgres.url())
    with pytest.raises(SourceError, match="another database cluster"):
        project.plan("orders")
