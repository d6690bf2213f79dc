"""A user's mistake gets one clear message: where, what, what exists instead. No traceback, no password anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lab import Lab
from tests.mariadb import MariadbServer
from tests.services import PostgresServer, free_port, run_cli

PASSWORD = "s3cret-pw"


@pytest.fixture
def world(tmp_path: Path, pg_db: str) -> Lab:
    lab = Lab(tmp_path / "project", "postgres", pg_db)
    lab.fill(3)
    lab.write()
    return lab


def said_by(lab: Lab, code: int, *command: str) -> str:
    """What `floodmark` says to a person, the whole of it."""
    done = run_cli(*(command or ("run", "orders")), cwd=lab.root, code=code)
    text = done.stdout + done.stderr
    assert "Traceback" not in text
    assert PASSWORD not in text
    for path in lab.root.rglob("*"):
        if path.is_file() and path.name != "floodmark.yml":
            assert PASSWORD.encode() not in path.read_bytes(), path
    return text


def edit(lab: Lab, old: str, new: str) -> int:
    """The line that was changed."""
    path = lab.root / "floodmark.yml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return next(n for n, line in enumerate(path.read_text().splitlines(), 1) if new in line)


def test_a_misspelt_cursor_column(world: Lab) -> None:
    line = edit(world, "column: updated_at", "column: updatd_at")
    for command in (("run", "orders"), ("plan",)):
        text = said_by(world, 2, *command)
        assert '✗ orders  column "updatd_at" is not in orders' in text
        assert f"floodmark.yml:{line}  change: {{by: timestamp, column: updatd_at, delay: 0s}}" in text
        assert "did you mean updated_at?" in text
        assert "id, val, updated_at" in text


def test_a_misspelt_table(world: Lab) -> None:
    line = edit(world, "table: orders}", "table: ordrs}")
    text = said_by(world, 2)
    assert "there is no table ordrs" in text
    assert f"floodmark.yml:{line}" in text
    assert "did you mean public.orders?" in text


def test_a_key_that_is_not_in_the_table(world: Lab) -> None:
    edit(world, "keys: [id]", "keys: [order_id]")
    text = said_by(world, 2)
    assert 'column "order_id"' in text
    assert "id, val, updated_at" in text


def test_a_wrong_password(world: Lab, postgres: PostgresServer) -> None:
    edit(world, f":{PASSWORD}@", ":wr0ng-secret@")
    done = run_cli("run", "orders", cwd=world.root, code=1)
    text = done.stdout + done.stderr
    assert "password authentication failed" in text
    assert f"127.0.0.1:{postgres.port}" in text
    assert "floodmark.yml:" in text
    assert "wr0ng-secret" not in text
    assert "Traceback" not in text


def test_a_wrong_host(world: Lab, postgres: PostgresServer) -> None:
    port = free_port()
    edit(world, f":{postgres.port}/", f":{port}/")
    text = said_by(world, 1)
    assert f"can't connect to Postgres at 127.0.0.1:{port}" in text
    assert "refused" in text


def test_a_cursor_of_the_wrong_type(world: Lab) -> None:
    edit(world, "by: timestamp, column: updated_at", "by: timestamp, column: id")
    text = said_by(world, 2)
    assert 'column "id" of orders is bigint, not a timestamp' in text
    assert "by: sequence" in text


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("mode: upsert", "mode: upsrt", "upsert"),
        ("batch_rows: 1000", "batch_rows: many", "whole number"),
        ("table: orders}", "tabel: orders}", "did you mean table"),
        ("connection: shop,", "connection: shp,", "did you mean shop"),
        ("type: delta", "type: detla", "did you mean delta"),
    ],
)
def test_mistakes_in_the_file_are_found_offline(world: Lab, old: str, new: str, words: str) -> None:
    line = edit(world, old, new)
    text = said_by(world, 2, "validate")
    assert f"floodmark.yml:{line}" in text
    assert words in text


def test_a_connection_that_can_not_be_what_it_is_used_as(world: Lab) -> None:
    edit(world, "{type: delta, path: lake}", "{type: jdbc, url: 'jdbc:h2:mem:x', driver: org.h2.Driver}")
    text = said_by(world, 2)
    assert "a jdbc connection can't be a target" in text


def test_debug_shows_the_traceback_without_the_password(world: Lab) -> None:
    edit(world, "column: updated_at", "column: updatd_at")
    done = run_cli("run", "orders", "--debug", cwd=world.root, code=2)
    assert "Traceback" in done.stderr
    assert PASSWORD not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "url", ["postgresql://ro:Sup@erS3cret/w:rd@localhost:1/x", "postgresql://ro:pw@localhost:99x/x"]
)
def test_a_url_that_can_not_be_split_is_never_shown(world: Lab, url: str) -> None:
    edit(world, world.url, url)
    text = said_by(world, 2)
    assert "percent-encode" in text
    for part in ("Sup", "erS3cret", "w:rd", "ers3cret"):
        assert part not in text


def test_a_target_folder_that_can_not_be_written_is_known_before_anything_is_read(world: Lab) -> None:
    (world.root / "lake").write_text("a file")
    assert "lake is not a folder" in said_by(world, 1, "plan")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("delay: 0s}", "delay: 0s, timezone: Mars/Phobos}", "is not a time zone"),
        ("state: sqlite:///state.db", "state: redis://x", "unknown state backend 'redis'"),
    ],
)
def test_zones_and_stores_are_checked_offline(world: Lab, old: str, new: str, words: str) -> None:
    edit(world, old, new)
    assert words in said_by(world, 2, "validate")


@pytest.fixture
def my_world(tmp_path: Path, my_db: str) -> Lab:
    lab = Lab(tmp_path / "project", "mariadb", my_db)
    lab.fill(3)
    lab.write()
    return lab


def test_a_misspelt_table_or_database_on_mariadb(my_world: Lab) -> None:
    line = edit(my_world, "table: orders}", "table: ordrs}")
    text = said_by(my_world, 2, "plan")
    assert "there is no table ordrs" in text
    assert f"floodmark.yml:{line}" in text
    assert "did you mean orders?" in text
    edit(my_world, "table: ordrs}", "table: shp.orders}")
    assert "there is no table shp.orders" in said_by(my_world, 2, "plan")


def test_a_misspelt_column_or_one_of_the_wrong_type_on_mariadb(my_world: Lab) -> None:
    edit(my_world, "column: updated_at", "column: Updated_At")
    assert "did you mean updated_at?" in said_by(my_world, 2, "plan")
    edit(my_world, "column: Updated_At", "column: id")
    assert 'column "id" of orders is bigint(20), not a timestamp' in said_by(my_world, 2, "plan")


def test_a_wrong_password_host_or_database_on_mariadb(my_world: Lab, mariadb: MariadbServer) -> None:
    edit(my_world, f":{PASSWORD}@", ":wr0ng-secret@")
    text = said_by(my_world, 1)
    assert "Access denied for user 'floodmark'" in text
    assert f"127.0.0.1:{mariadb.port}" in text
    assert "floodmark.yml:" in text
    assert "wr0ng-secret" not in text
    edit(my_world, f"wr0ng-secret@127.0.0.1:{mariadb.port}", f"{PASSWORD}@127.0.0.1:{free_port()}")
    assert "can't connect to MySQL at 127.0.0.1" in said_by(my_world, 1, "plan")


def test_a_query_that_fails_is_shown_with_its_line(world: Lab) -> None:
    line = edit(world, "table: orders}", 'query: "select * from ordrs"}')
    text = said_by(world, 2, "plan")
    assert 'the query fails: relation "ordrs" does not exist' in text
    assert f"floodmark.yml:{line}" in text


def test_a_query_that_fails_on_mariadb_is_shown_with_its_line(my_world: Lab) -> None:
    line = edit(my_world, "table: orders}", 'query: "selct 1"}')
    text = said_by(my_world, 2, "plan")
    assert "the query fails: You have an error in your SQL syntax" in text
    assert f"floodmark.yml:{line}" in text


def test_a_source_is_a_table_or_a_query_or_a_pattern(world: Lab) -> None:
    line = edit(world, "table: orders}", 'table: orders, query: "select 1"}')
    text = said_by(world, 2, "validate")
    assert "set one of `table`, `query` and `tables`, not table and query" in text
    assert f"floodmark.yml:{line}" in text
