from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.h2 import H2
from tests.lab import Lab
from tests.mariadb import MariadbServer
from tests.objects import S3Server
from tests.services import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Wherever the tests run: no command leaves a warm Spark or an archive behind, unless its test says so.
os.environ.setdefault("CI", "true")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all tests. A test that changes settings takes `own_session(spark)`."""
    from floodmark.model.plan import Work
    from floodmark.model.spec import SparkSpec
    from floodmark.spark.session import open_session, stop_session

    log_file = tmp_path_factory.mktemp("spark") / "spark.log"
    # Many small loads, each with queries of its own: compiling them takes longer than running them.
    settings: dict[str, str | int | float | bool] = {"spark.driver.memory": "2g", "spark.sql.codegen.wholeStage": False}
    settings["spark.sql.codegen.factoryMode"] = "NO_CODEGEN"
    # A JVM that lives as long as the tests: what it runs often is worth compiling well, and room is worth its memory.
    settings["spark.driver.extraJavaOptions"] = "-XX:TieredStopAtLevel=4 -XX:MetaspaceSize=512m -Xmn768m"
    # VACUUM lists a table's folders in this many tasks; the default is 10,000.
    settings["spark.sql.sources.parallelPartitionDiscovery.parallelism"] = 4
    needs = ["delta", "iceberg", "postgres", "sqlite", "mysql", H2]
    session = open_session(SparkSpec(config=settings), needs=needs, log_file=log_file, work=Work(0))
    yield session
    stop_session(session)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture
def pg_db(postgres: PostgresServer) -> Iterator[str]:
    """The URL of a new, empty database."""
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    with MariadbServer() as server:
        yield server


@pytest.fixture
def my_db(mariadb: MariadbServer) -> Iterator[str]:
    """The URL of a new, empty database."""
    url = mariadb.create_database()
    yield url
    mariadb.drop_database(url)


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


@pytest.fixture
def s3_bucket(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a new, empty bucket; how to reach it is in the environment, as users have it."""
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    return s3.create_bucket()


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def lab(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Lab:
    """The same world over each database."""
    database = {"postgres": "pg_db", "mariadb": "my_db"}.get(request.param)
    url = request.getfixturevalue(database) if database else ""
    return Lab(tmp_path / "project", request.param, url, spark)


@pytest.fixture
def pg_lab(tmp_path: Path, pg_db: str, spark: SparkSession) -> Lab:
    return Lab(tmp_path / "project", "postgres", pg_db, spark)


@pytest.fixture
def my_lab(tmp_path: Path, my_db: str, spark: SparkSession) -> Lab:
    return Lab(tmp_path / "project", "mariadb", my_db, spark)


@pytest.fixture(params=["postgres", "mariadb"])
def server_lab(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Lab:
    """Over each database that is a server."""
    url = request.getfixturevalue({"postgres": "pg_db", "mariadb": "my_db"}[request.param])
    return Lab(tmp_path / "project", request.param, url, spark)


@pytest.fixture
def sqlite_lab(tmp_path: Path, spark: SparkSession) -> Lab:
    return Lab(tmp_path / "project", "sqlite", "", spark)
