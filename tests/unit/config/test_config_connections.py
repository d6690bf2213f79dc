from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from floodmark.errors import ConfigError, MissingExtra, Place

if TYPE_CHECKING:
    from tests.unit.config.conftest import Desk

SHOP = 'shop: {type: shop, url: "db://host/shop"}'


@pytest.mark.parametrize(
    ("shop", "message", "hint"),
    [
        (
            "shop: {type: shoop, url: x}",
            "unknown connection type 'shoop' in connections.shop",
            "did you mean shop? Known types: lake, shop, oracle",
        ),
        (
            "shop: {type: zzz}",
            "unknown connection type 'zzz' in connections.shop",
            "Known types: lake, shop, oracle",
        ),
        ("shop: {url: x}", "missing option 'type' in connections.shop", "Known types: lake, shop, oracle"),
        (
            "shop: {tpye: shop, url: x}",
            "missing option 'type' in connections.shop",
            "did you mean type instead of tpye? Known types: lake, shop, oracle",
        ),
        ("shop: {type: 5}", "connections.shop.type: expected text, got 5", None),
        ("shop:", "connections.shop: expected a mapping, got nothing", None),
        ("shop: [a]", "connections.shop: expected a mapping, got a list", None),
        ("shop: db://user:hunter2@host", "connections.shop: expected a mapping, got text", None),
        ("shop: {type: shop}", "missing option 'url' in connections.shop", None),
        (
            "shop: {type: shop, url: x, prot: 1}",
            "unknown key 'prot' in connections.shop",
            "did you mean port? "
            "Known keys: type, url, password, port, ratio, ssl, pool, pools, token, flags, signature",
        ),
        (
            "shop: {type: shop, url: x, port: abc}",
            "connections.shop.port: expected a whole number, got 'abc'",
            None,
        ),
        (
            "shop: {type: shop, url: x, ratio: abc}",
            "connections.shop.ratio: expected a number, got 'abc'",
            None,
        ),
        (
            "shop: {type: shop, url: x, flags: [fast, saef]}",
            "flags 'saef' is not one of fast, safe",
            "did you mean safe?",
        ),
        (
            "shop: {type: shop, url: x, pool: {siez: 1}}",
            "unknown key 'siez' in connections.shop.pool",
            "did you mean size? Known keys: size",
        ),
        (
            "shop: {type: shop, url: x, pools: {size: {size: x}}}",
            "connections.shop.pools.size.size: expected a whole number, got 'x'",
            None,
        ),
    ],
)
def test_what_is_wrong_with_a_connection(desk: Desk, good: str, shop: str, message: str, hint: str | None) -> None:
    error = desk.fails(good.replace(SHOP, shop))
    assert error.message == message
    assert error.hint == hint
    assert error.declared_at is not None
    assert str(error.declared_at) == "floodmark.yml:2"
    assert "hunter2" not in error.declared_at.text


def test_a_missing_extra_stays_one_and_gets_its_line(desk: Desk, good: str) -> None:
    error = desk.fails(good.replace("type: shop", "type: oracle"))
    assert isinstance(error, MissingExtra)
    assert error.message == "oracledb is not installed"
    assert error.hint == "pip install 'floodmark[oracle]'"
    assert error.declared_at is not None
    assert (error.declared_at.file, error.declared_at.line) == ("floodmark.yml", 2)


def test_a_known_type_that_can_not_be_had_keeps_its_own_words(desk: Desk, good: str) -> None:
    from floodmark.config import load_project

    def refuse(name: str) -> type:
        raise ConfigError(f"{name} is broken", hint="mend it")

    desk.write("floodmark.yml", good)
    with pytest.raises(ConfigError) as caught:
        load_project("floodmark.yml", connection_class=refuse, connection_types=lambda: ["lake", "shop"], environ={})
    assert caught.value.message == "shop is broken"
    assert str(caught.value.declared_at) == "floodmark.yml:2"
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("mend it\n1 more problem:\n  floodmark.yml:3  lake is broken")


@pytest.mark.parametrize(
    ("old", "new", "line", "side"),
    [("connection: shop", "connection: shpo", 6, "source"), ("connection: lake", "connection: shpo", 8, "target")],
)
def test_a_reference_to_no_connection(desk: Desk, good: str, old: str, new: str, line: int, side: str) -> None:
    error = desk.fails(good.replace(old, new))
    assert error.message == f"unknown connection 'shpo' in pipelines.orders.{side}"
    assert error.hint == "did you mean shop? Connections: shop, lake"
    assert error.pipeline == "orders"
    assert str(error.declared_at) == f"floodmark.yml:{line}"


def test_a_reference_in_the_defaults(desk: Desk, good: str) -> None:
    error = desk.fails(good.replace("connection: lake, ", "") + "defaults:\n  target: {connection: laek}\n")
    assert error.message == "unknown connection 'laek' in defaults.target"
    assert error.pipeline is None
    assert error.declared_at == Place("floodmark.yml", 11, "target: {connection: laek}")


def test_no_connections_at_all(desk: Desk, good: str) -> None:
    error = desk.fails(good[good.index("pipelines:") :])
    assert error.message == "unknown connection 'shop' in pipelines.orders.source"
    assert error.hint is not None
    assert error.hint.startswith("Connections: none\n1 more problem:")


def test_a_broken_connection_is_not_also_unknown(desk: Desk, good: str) -> None:
    error = desk.fails(good.replace("path: ./lake", "paht: ./lake"))
    assert error.message == "unknown key 'paht' in connections.lake"
    assert "problem" not in (error.hint or "")


COPY = """\
  copy:
    source: {connection: shop, table: public.copy}
    change: {by: timestamp, column: updated_at}
    target:
      connection: lake
      table: orders
      mode: append
"""


def test_one_table_one_pipeline(desk: Desk, good: str) -> None:
    error = desk.fails(good + COPY)
    assert error.message == "pipelines orders and copy both load lake.orders: one table, one pipeline"
    assert error.declared_at == Place("floodmark.yml", 15, "table: orders")
    assert error.hint == "orders declares it at floodmark.yml:8"
    assert error.pipeline == "copy"


def test_two_names_of_one_connection_are_still_one_table(desk: Desk, good: str) -> None:
    twin = good.replace("pipelines:", "  pond: {type: lake, path: ./lake}\npipelines:")
    error = desk.fails(twin + COPY.replace("connection: lake", "connection: pond"))
    assert error.message == "pipelines orders and copy both load lake.orders: one table, one pipeline"
    other = good.replace("pipelines:", "  pond: {type: lake, path: ./pond}\npipelines:")
    assert desk.load(other + COPY.replace("connection: lake", "connection: pond")).pipelines.keys() == {
        "orders",
        "copy",
    }


def test_the_same_table_name_from_two_sources_is_fine(desk: Desk, good: str) -> None:
    assert len(desk.load(good + COPY.replace("table: orders", "table: other")).pipelines) == 2
