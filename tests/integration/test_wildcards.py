"""One pipeline for each table of a pattern, on each database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.lab import Lab, ok

from floodmark.errors import ConfigError, SourceError
from floodmark.opening import load, validate

PATTERN = {"sqlite": "*", "postgres": "public.*", "mariadb": "*"}
KINDS = {"sqlite": "DATETIME", "postgres": "timestamptz", "mariadb": "datetime(6)"}


@pytest.fixture
def shop(lab: Lab) -> Lab:
    kind = KINDS[lab.kind]
    lab.fill(3)
    lab.execute(f"CREATE TABLE items (a int, b int, updated_at {kind} NOT NULL, PRIMARY KEY (b, a))")
    lab.execute("INSERT INTO items VALUES (?, ?, ?)", [(1, 1, "2026-01-01 10:00:00"), (1, 2, "2026-01-01 10:00:00")])
    lab.execute("CREATE TABLE audit (id int PRIMARY KEY, said varchar(10))")
    lab.execute(f"CREATE TABLE loose (id int, updated_at {kind} NOT NULL)")
    return lab


def declared(lab: Lab, exclude: str = "", **changes: str) -> dict[str, Any]:
    return {
        "source": f'{{connection: shop, tables: "{PATTERN[lab.kind]}"{exclude}}}',
        "target": '{connection: lake, table: "raw_{table}", mode: upsert}',
        "pipeline": "shop",
        **changes,
    }


def test_each_table_is_a_pipeline_and_one_that_does_not_fit_is_refused_by_name(shop: Lab) -> None:
    project = shop.project(**declared(shop))
    assert project.names() == ["shop.audit", "shop.items", "shop.loose", "shop.orders"]
    assert project.names(["shop"]) == project.names(["shop.*"]) == project.names()
    assert ok(project.run("shop.orders")).rows.inserted == 3
    assert ok(project.run("shop.items")).rows.inserted == 2
    assert project.spec.pipelines["shop.items"].target.table == "raw_items"
    assert project.store.get("shop.items").identity["keys"] == ["b", "a"]  # type: ignore[union-attr]
    assert ok(project.run("shop.items")).nothing_new
    with pytest.raises(ConfigError, match=r'column "updated_at" is not in .*audit') as caught:
        project.plan("shop.audit")
    assert "exclude: [" in (caught.value.hint or "")
    assert caught.value.declared_at is not None
    with pytest.raises(ConfigError, match="loose has no primary key"):
        project.run("shop.loose")
    assert project.status("shop.orders").health == "ok"


def test_excluded_tables_are_left_out(shop: Lab) -> None:
    project = shop.project(**declared(shop, ", exclude: [audit, 'lo*']"))
    assert project.names() == ["shop.items", "shop.orders"]


def test_validate_opens_no_connection_and_a_pipeline_by_hand_needs_no_listing(tmp_path: Path) -> None:
    path = tmp_path / "floodmark.yml"
    path.write_text(
        "connections:\n  shop: {type: mysql, url: 'mysql://a:b@127.0.0.1:1/x', connect_timeout: 1}\n"
        "  lake: {type: delta, path: lake}\n"
        "defaults:\n  change: {by: none}\n  target: {connection: lake}\n"
        "pipelines:\n"
        "  all: {source: {connection: shop, tables: '*'}, target: {table: '{table}', mode: upsert}}\n"
        "  one: {source: {connection: shop, table: t}, target: {table: one, mode: replace}}\n"
    )
    assert list(validate(path).pipelines) == ["all", "one"]
    project = load(path)
    assert project.names(["one"]) == ["one"]
    assert project.names() == ["all", "one"], "what can't be listed stays in sight"
    with pytest.raises(SourceError, match="can't connect") as caught:
        project.run("all")
    assert caught.value.transient
    assert caught.value.pipeline == "all"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("raw_{table}", "raw", "write `{table}` in its name"),
        (", tables:", ", table: x, tables:", "set one of `table`, `query` and `tables`"),
    ],
)
def test_what_can_be_known_offline_is_told_offline(sqlite_lab: Lab, old: str, new: str, words: str) -> None:
    path = sqlite_lab.write(**declared(sqlite_lab))
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ConfigError, match=words.replace("{", r"\{")):
        validate(path)


def test_a_table_that_another_pipeline_loads_is_refused(sqlite_lab: Lab) -> None:
    path = sqlite_lab.write(**declared(sqlite_lab))
    path.write_text(
        path.read_text() + "  mine:\n    source: {connection: shop, table: orders}\n"
        "    change: {by: none}\n    target: {connection: lake, table: raw_orders, mode: replace}\n"
    )
    with pytest.raises(ConfigError, match=r"shop\.orders and mine both load lake\.raw_orders"):
        load(path).names()


def test_tables_of_one_name_in_two_schemas_go_apart_by_their_schema(pg_lab: Lab) -> None:
    pg_lab.fill(1)
    pg_lab.execute("CREATE SCHEMA old")
    pg_lab.execute("CREATE TABLE old.orders AS SELECT * FROM orders")
    pg_lab.execute("ALTER TABLE old.orders ADD PRIMARY KEY (id)")
    wanted = {"source": '{connection: shop, tables: "*.orders"}', "pipeline": "shop"}
    with pytest.raises(ConfigError, match="both load"):
        pg_lab.project(**wanted, target='{connection: lake, table: "{table}", mode: upsert}').names()
    project = pg_lab.project(**wanted, target='{connection: lake, table: "{schema}/{table}", mode: upsert}')
    assert project.names() == ["shop.old.orders", "shop.public.orders"]
    assert ok(project.run("shop.old.orders")).rows.inserted == 1


def test_a_pattern_that_matches_nothing_says_what_there_is(sqlite_lab: Lab) -> None:
    project = sqlite_lab.project(**declared(sqlite_lab, source='{connection: shop, tables: "sales_*"}'))
    with pytest.raises(ConfigError, match=r"no table matches sales_\*") as caught:
        project.run("shop")
    assert "orders" in (caught.value.hint or "")


def test_grants_of_a_pattern_whose_login_fails_say_so(pg_lab: Lab) -> None:
    """Rather than that '' is not the name of a table, which nobody wrote."""
    pg_lab.write(**declared(pg_lab))
    path = pg_lab.root / "floodmark.yml"
    path.write_text(path.read_text().replace("s3cret-pw", "wrong-pw"))
    project = pg_lab.load()
    (name,) = project.names()
    with pytest.raises(SourceError, match="password authentication failed"):
        project.grants(name)
