from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.lab import Lab
from tests.races import RaceLab
from tests.services import run_cli
from tests.storm_ends import DeltaEnd

from floodmark.spark.jars import archives_folder

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
    root = tmp_path / "project"
    return RaceLab.into(DeltaEnd(root), root, request.param, url, spark)


@pytest.fixture(scope="session", autouse=True)
def archive(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Runs that are killed leave no archive of classes behind, and each of them would start slowly: one ordinary run
    does. Nobody waits for it: the other tests begin without."""
    if any(archives_folder().glob("*.size")):
        return
    folder = tmp_path_factory.getbasetemp().parent / "archive"
    try:
        folder.mkdir()
    except FileExistsError:
        return  # another worker's
    lab = Lab(folder, "sqlite")
    lab.fill(10)
    for choice, moment in (("off", "2026-01-01"), ("on", "2026-01-02")):
        lab.own_spark = f"{{archive: {choice}}}"  # of a run that updates rows, too
        lab.write()
        lab.execute(f"UPDATE orders SET updated_at = '{moment} 12:00:00' WHERE id < 5")
        run_cli("run", "orders", cwd=folder)
