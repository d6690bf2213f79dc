"""The words that a user sees, and the line they point at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from floodmark.errors import Place
from floodmark.model.options import Options
from floodmark.model.spec import PipelineSpec, SourceSpec

if TYPE_CHECKING:
    from tests.unit.config.conftest import Desk

MODES = "append, upsert, replace_range, replace_partitions, replace, history"


def known_keys(kind: type[Options], *hidden: str) -> str:
    return "Known keys: " + ", ".join(name for name in kind.model_fields if name not in hidden)


PIPELINE_KEYS = known_keys(PipelineSpec, "name", "places")


def test_the_error_of_the_sketch(desk: Desk, good: str) -> None:
    error = desk.fails(good.replace("table: public.orders", "tabel: public.orders"))
    assert error.message == "unknown key 'tabel' in pipelines.orders.source"
    assert error.declared_at == Place("floodmark.yml", 6, "source: {connection: shop, tabel: public.orders}")
    assert error.hint == f"did you mean table? {known_keys(SourceSpec)}"
    assert error.pipeline == "orders"
    assert error.exit_code == 2


@pytest.mark.parametrize(
    ("old", "new", "line", "message", "hint"),
    [
        (
            "batch_rows:",
            "batch_row:",
            9,
            "unknown key 'batch_row' in pipelines.orders",
            f"did you mean batch_rows? {PIPELINE_KEYS}",
        ),
        (
            "batch_rows: 500",
            "name: x",
            9,
            "unknown key 'name' in pipelines.orders",
            PIPELINE_KEYS,
        ),
        (
            "column: updated_at",
            "colum: updated_at",
            7,
            "unknown key 'colum' in pipelines.orders.change",
            "did you mean column? Known keys: column, columns, nulls, nulls_every, start, delay, wait, backwards, by, "
            "timezone, fence, lookback",
        ),
        (
            "batch_rows: 500",
            "zzz: 1",
            9,
            "unknown key 'zzz' in pipelines.orders",
            PIPELINE_KEYS,
        ),
        (
            "connections:",
            "conections:",
            1,
            "unknown key 'conections' at the top level",
            "did you mean connections? Known keys: connections, state, defaults, pipelines, spark, lease_ttl, "
            "variables, include",
        ),
        (
            "500",
            "abc",
            9,
            "pipelines.orders.batch_rows: expected a whole number, got 'abc'",
            None,
        ),
        ("500", "1.5", 9, "pipelines.orders.batch_rows: expected a whole number, got 1.5", None),
        ("500", "", 9, "pipelines.orders.batch_rows: expected a whole number, got nothing", None),
        ("500", "0", 9, "batch_rows must be at least 1, got 0", None),
        ("500", "-5", 9, "batch_rows must be at least 1, got -5", None),
        ("shop, table", "shop, partitions: 2000, table", 6, "partitions must be at most 1000, got 2000", None),
        (
            "mode: upsert",
            "mode: upsrt",
            8,
            f"mode 'upsrt' is not one of {MODES}",
            "did you mean upsert?",
        ),
        (
            "mode: upsert",
            "mode: UPSERT",
            8,
            f"mode 'UPSERT' is not one of {MODES}",
            "did you mean upsert?",
        ),
        (
            "mode: upsert",
            "mode: 7",
            8,
            f"mode 7 is not one of {MODES}",
            None,
        ),
        (
            "by: timestamp",
            "by: timestmp",
            7,
            "by 'timestmp' is not one of timestamp, sequence, none",
            "did you mean timestamp?",
        ),
        ("by: timestamp", "by: null", 7, "by nothing is not one of timestamp, sequence, none", None),
        ("by: timestamp", "by: [a]", 7, "by a list is not one of timestamp, sequence, none", None),
        (
            "by: timestamp, ",
            "",
            7,
            "missing option 'by' in pipelines.orders.change",
            "One of timestamp, sequence, none. Set it here or under defaults.",
        ),
        (
            "table: public.orders",
            "partitions: 2",
            6,
            "missing option 'table' in pipelines.orders.source",
            "The table to read, or instead of it a `query`, or a pattern of `tables`. Set it here or under defaults.",
        ),
        (
            "    source: {connection: shop, table: public.orders}\n",
            "",
            5,
            "missing option 'source' in pipelines.orders",
            "Where the rows come from. Set it here or under defaults.",
        ),
        (
            "[order_id]",
            "order_id",
            8,
            "pipelines.orders.target.keys: expected a list, got 'order_id'",
            "write it as a list: [order_id]",
        ),
        ("[order_id]", "{a: 1}", 8, "pipelines.orders.target.keys: expected a list, got a mapping", None),
        ("[order_id]", "[a, 5]", 8, "pipelines.orders.target.keys.1: expected text, got 5", 'put it in quotes: "5"'),
        (
            "public.orders",
            "2024",
            6,
            "pipelines.orders.source.table: expected text, got 2024",
            'put it in quotes: "2024"',
        ),
        (
            "public.orders",
            "true",
            6,
            "pipelines.orders.source.table: expected text, got true",
            'put it in quotes: "true"',
        ),
        (
            "public.orders",
            "2024-01-02",
            6,
            "pipelines.orders.source.table: expected text, got 2024-01-02",
            'put it in quotes: "2024-01-02"',
        ),
        (
            "{by: timestamp, column: updated_at}",
            "timestamp",
            7,
            "pipelines.orders.change: expected a mapping, got 'timestamp'",
            None,
        ),
        (
            "{by: timestamp, column: updated_at}",
            "[]",
            7,
            "pipelines.orders.change: expected a mapping, got a list",
            None,
        ),
        (
            "column: updated_at",
            "column: u, start: [1]",
            7,
            "pipelines.orders.change.start: expected a whole number, a date and time or text, got a list",
            None,
        ),
        (
            "keys: [order_id]",
            "keys: [order_id], deletion_vectors: maybe",
            8,
            "pipelines.orders.target.deletion_vectors: expected true or false, got 'maybe'",
            None,
        ),
        (", keys: [order_id]", "", 8, "mode upsert needs `keys`: the columns that identify a row", None),
        (
            "column: updated_at",
            "column: u, delay: 5x",
            7,
            "'5x' is not a duration: write it like 500ms, 2s, 5m, 1h30m or 7d",
            None,
        ),
        (
            "mode: upsert",
            "mode: replace",
            5,
            "mode replace loads the whole table: use it with `change: {by: none}`, or choose append or upsert",
            None,
        ),
        ("batch_rows: 500", "transform: {}", 9, "set either `sql` or `python`", None),
    ],
)
def test_one_mistake(desk: Desk, good: str, old: str, new: str, line: int, message: str, hint: str | None) -> None:
    text = good.replace(old, new, 1)
    assert text != good
    error = desk.fails(text)
    assert error.message == message
    assert error.declared_at == Place("floodmark.yml", line, text.splitlines()[line - 1].strip())
    assert (error.hint or "").partition("\n")[0] == (hint or "")


def test_only_the_mistake_is_told(desk: Desk, good: str) -> None:
    # One slip, one problem: not also the option that is now missing.
    for old, new in (("table:", "tabel:"), ("column:", "colum:"), ("connection: lake", "conection: lake")):
        assert "problem" not in (desk.fails(good.replace(old, new, 1)).hint or "")


def test_a_list_item_is_found_on_its_line(desk: Desk, good: str) -> None:
    text = good.replace("target: {connection: lake, table: orders, mode: upsert, keys: [order_id]}", "target:")
    text = text.replace("    batch_rows: 500\n", "")
    text += "      connection: lake\n      table: orders\n      mode: upsert\n"
    text += "      keys:\n        - order_id\n        - 5\n"
    error = desk.fails(text)
    assert error.message == "pipelines.orders.target.keys.1: expected text, got 5"
    assert error.declared_at == Place("floodmark.yml", 14, "- 5")


def test_a_long_value_is_cut(desk: Desk, good: str) -> None:
    error = desk.fails(good.replace("500", "x" * 200))
    assert error.message == f"pipelines.orders.batch_rows: expected a whole number, got '{'x' * 57}...'"


def test_all_mistakes_are_told_in_the_order_of_the_file(desk: Desk, good: str) -> None:
    text = good.replace("tabel", "x").replace("500", "abc").replace("mode: upsert", "mode: upsrt")
    text = text.replace("table: public", "tabel: public").replace("path:", "paht:")
    error = desk.fails(text)
    assert error.message == "unknown key 'paht' in connections.lake"
    assert error.hint == (
        "did you mean path? Known keys: type, path\n"
        "3 more problems:\n"
        "  floodmark.yml:6  unknown key 'tabel' in pipelines.orders.source "
        "(did you mean table? Known keys: connection, table, query, tables, exclude, partitions, fetch_size)\n"
        f"  floodmark.yml:8  mode 'upsrt' is not one of {MODES} (did you mean upsert?)\n"
        "  floodmark.yml:9  pipelines.orders.batch_rows: expected a whole number, got 'abc'"
    )


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("connections: []\n", 1, "connections must be a mapping of names, got a list"),
        ("state: x\npipelines: orders\n", 2, "pipelines must be a mapping of names, got text"),
        ("defaults: 5\n", 1, "defaults must be a mapping of names, got a number"),
        ("state: [1]\n", 1, "state must be a URL or a mapping, got a list"),
        ("spark: true\n", 1, "spark must be a mapping of names, got a boolean"),
        ("pipelines:\n  orders: 5\n", 2, "pipelines.orders: expected a mapping, got 5"),
        ("pipelines:\n  orders: [a]\n", 2, "pipelines.orders: expected a mapping, got a list"),
        ("spark:\n  mastr: x\n", 2, "unknown key 'mastr' in spark"),
        (
            "spark:\n  config:\n    a.b: [1]\n",
            3,
            "spark.config.a.b: expected text, a whole number, a number or true or false, got a list",
        ),
    ],
)
def test_sections_of_the_wrong_shape(desk: Desk, text: str, line: int, message: str) -> None:
    error = desk.fails(text)
    assert error.message == message
    assert str(error.declared_at) == f"floodmark.yml:{line}"


@pytest.mark.parametrize(
    ("text", "line"), [("state: x\n", 1), ("state: x\npipelines:\n", 1), ("state: x\npipelines: {}\n", 2)]
)
def test_no_pipelines(desk: Desk, text: str, line: int) -> None:
    error = desk.fails(text)
    assert error.message == "no pipelines in floodmark.yml"
    assert str(error.declared_at) == f"floodmark.yml:{line}"
    assert error.hint is not None
    assert error.hint.startswith("add one:\npipelines:\n")


def test_nothing_of_pydantic_is_chained(desk: Desk, good: str) -> None:
    error = desk.fails(good.replace("500", "abc"))
    assert error.__cause__ is None
    assert error.__context__ is None


def test_empty_sections_are_as_good_as_none(desk: Desk, good: str) -> None:
    project = desk.load(good + "defaults:\nspark:\nvariables:\nstate:\ninclude:\n")
    assert project.state == "sqlite:///.floodmark/state.db"


def test_spark_and_state_pass_through(desk: Desk, good: str) -> None:
    project = desk.load(good + "state: {type: postgres, url: y}\nspark: {config: {spark.sql.x: 4, y: true}}\n")
    assert project.state == {"type": "postgres", "url": "y"}
    assert project.spark.config == {"spark.sql.x": 4, "y": True}
