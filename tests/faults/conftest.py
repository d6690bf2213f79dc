from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.races import RaceLab

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


@pytest.fixture(params=["postgres", "mariadb"])
def race_lab(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> RaceLab:
    url = request.getfixturevalue({"postgres": "pg_db", "mariadb": "my_db"}[request.param])
    return RaceLab(tmp_path / "project", request.param, url, spark)
