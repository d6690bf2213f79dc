from __future__ import annotations

from collections.abc import Callable

import pytest

SERVERS = {"postgresql": "postgres", "mysql": "mariadb"}


@pytest.fixture
def state_url(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """What `state:` says for each kind of store, on servers that really run; never the source's own database."""

    def url(kind: str) -> str:
        if kind in SERVERS:
            server = request.getfixturevalue(SERVERS[kind])
            made = str(server.create_database())
            request.addfinalizer(lambda: server.drop_database(made))
            return made
        if kind == "s3":
            return f"{request.getfixturevalue('s3_bucket')}/team/state.json"
        return {"sqlite": "sqlite:///state.db", "file": "file:state.json", "env": "env:FLOODMARK_STATE"}[kind]

    return url
