"""The same spec declared in Python: no file, no lines, so errors name the dotted path."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.config.conftest import Desk

DATA: dict[str, Any] = {
    "connections": {"shop": {"type": "shop", "url": "db://host/shop"}, "lake": {"type": "lake", "path": "./lake"}},
    "pipelines": {
        "orders": {
            "source": {"connection": "shop", "table": "public.orders"},
            "change": {"by": "timestamp", "column": "updated_at"},
            "target": {"connection": "lake", "table": "orders", "mode": "upsert", "keys": ("order_id",)},
            "batch_rows": 500,
        }
    },
}

MODES = "append, upsert, replace_range, replace_partitions, replace, history"


def changed(path: str, value: object) -> dict[str, Any]:
    data = copy.deepcopy(DATA)
    *parents, last = path.split(".")
    place = data
    for step in parents:
        place = place[step]
    place[last] = value
    return data


def test_python_and_yaml_make_the_same_spec(desk: Desk, good: str) -> None:
    declared, loaded = desk.declare(DATA), desk.load(good)
    assert declared.model_dump() == loaded.model_dump()
    assert dict(declared.connections) == dict(loaded.connections)
    assert declared.root == str(desk.folder)
    assert declared.pipelines["orders"].places == {}
    assert declared.pipelines["orders"].at("source.table") is None


def test_the_data_is_left_alone(desk: Desk) -> None:
    before = copy.deepcopy(DATA)
    desk.declare(DATA)
    assert before == DATA


def test_typed_values_variables_and_defaults(desk: Desk) -> None:
    data = changed("pipelines.orders.change.delay", timedelta(seconds=9))
    data["defaults"] = {"source": {"fetch_size": "${N}"}}
    orders = desk.declare(data, environ={"N": "5"}).pipelines["orders"]
    assert orders.source.fetch_size == 5
    assert orders.change.model_dump()["delay"] == "9s"


def test_python_may_include_files(desk: Desk) -> None:
    desk.write("more.yml", "defaults:\n  batch_row: 7\n")
    error = desk.declaring_fails({**DATA, "include": "more.yml"})
    assert error.message == "unknown key 'batch_row' in defaults"
    assert str(error.declared_at) == f"{desk.folder}/more.yml:2"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("pipelines.orders.source.tabel", "x", "unknown key 'tabel' in pipelines.orders.source"),
        (
            "pipelines.orders.target.mode",
            "upsrt",
            f"pipelines.orders.target.mode 'upsrt' is not one of {MODES}",
        ),
        ("pipelines.orders.batch_rows", 0, "pipelines.orders.batch_rows must be at least 1, got 0"),
        ("pipelines.orders.batch_rows", "x", "pipelines.orders.batch_rows: expected a whole number, got 'x'"),
        ("pipelines.orders.batch_rows", "${NO}", "pipelines.orders.batch_rows: variable NO is not set"),
        (
            "pipelines.orders.target.keys",
            (),
            "pipelines.orders.target: mode upsert needs `keys`: the columns that identify a row",
        ),
        ("pipelines.orders.source", {"connection": "shop"}, "missing option 'table' in pipelines.orders.source"),
        ("pipelines.orders.source.connection", "shpo", "unknown connection 'shpo' in pipelines.orders.source"),
        ("pipelines.orders", 5, "pipelines.orders: expected a mapping, got 5"),
        ("connections.shop.type", "shpo", "unknown connection type 'shpo' in connections.shop"),
        ("pipelines", {}, "no pipelines"),
        ("pipelines", {1: {}}, "pipeline name 1 is a number, not text"),
        ("pipelines", {"yes": {}}, "pipeline name 'yes' means true or false to many YAML readers"),
        ("pipeline", {}, "unknown key 'pipeline' at the top level"),
        ("include", "nothing.yml", "can't include 'nothing.yml': no such file"),
    ],
)
def test_errors_name_the_path(desk: Desk, path: str, value: object, message: str) -> None:
    error = desk.declaring_fails(changed(path, value))
    assert error.message == message
    assert error.declared_at is None


def test_one_table_one_pipeline(desk: Desk) -> None:
    error = desk.declaring_fails(changed("pipelines.copy", DATA["pipelines"]["orders"]))
    assert error.message == "pipelines orders and copy both load lake.orders: one table, one pipeline"
    assert error.hint == "give each its own table"


def test_several_problems(desk: Desk) -> None:
    error = desk.declaring_fails(changed("pipelines.orders", {"source": {}, "batch_rows": "x"}))
    assert error.hint is not None
    assert "3 more problems:" in error.hint
    assert "  pipelines.orders.batch_rows: expected a whole number, got 'x'" in error.hint


def test_not_a_mapping(desk: Desk) -> None:
    error = desk.declaring_fails([])  # type: ignore[arg-type]
    assert error.message == "expected sections such as `connections:` and `pipelines:`, got a list"
