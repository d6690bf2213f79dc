from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from floodmark.errors import ConfigError, Place
from floodmark.model.spec import SequenceSpec, TimestampSpec

if TYPE_CHECKING:
    from tests.unit.config.conftest import Desk


def test_a_good_file_becomes_a_spec(desk: Desk, good: str) -> None:
    project = desk.load(good)
    orders = project.pipelines["orders"]
    assert project.root == str(desk.folder)
    assert orders.name == "orders"
    assert orders.source.table == "public.orders"
    assert orders.target.keys == ("order_id",)
    assert orders.batch_rows == 500
    assert project.connections["lake"].model_dump() == {"type": "lake", "path": "./lake"}
    assert project.state == "sqlite:///.floodmark/state.db"


def test_every_option_knows_its_line(desk: Desk, good: str) -> None:
    places = desk.load(good).pipelines["orders"].places
    assert places[""] == Place("floodmark.yml", 5, "orders:")
    assert places["source"].line == 6
    assert places["source.table"].line == 6
    assert places["change.column"] == Place("floodmark.yml", 7, "change: {by: timestamp, column: updated_at}")
    assert places["target.keys"].line == 8
    assert places["batch_rows"].line == 9


def test_options_on_lines_of_their_own(desk: Desk, good: str) -> None:
    text = good.replace(
        "    change: {by: timestamp, column: updated_at}\n",
        "    change:\n      by: timestamp\n      columns:\n        - updated_at\n        - order_id\n",
    )
    places = desk.load(text).pipelines["orders"].places
    assert places["change"] == Place("floodmark.yml", 7, "change:")
    assert places["change.by"] == Place("floodmark.yml", 8, "by: timestamp")
    assert places["change.columns"].line == 9
    assert places["change.columns.1"] == Place("floodmark.yml", 11, "- order_id")


def test_the_path_is_shown_as_it_was_given(desk: Desk, good: str) -> None:
    desk.write("conf/floodmark.yml", good)
    relative = desk.load(file="conf/floodmark.yml")
    absolute = desk.load(file=desk.folder / "conf" / "floodmark.yml")
    assert relative.root == absolute.root == str(desk.folder / "conf")
    assert str(relative.pipelines["orders"].at("source")) == "conf/floodmark.yml:6"
    assert str(absolute.pipelines["orders"].at("source")) == f"{desk.folder}/conf/floodmark.yml:6"


def test_windows_line_ends_and_a_byte_order_mark(desk: Desk, good: str) -> None:
    desk.write("floodmark.yml", b"\xef\xbb\xbf" + good.replace("\n", "\r\n").encode())
    assert desk.load().pipelines["orders"].places["batch_rows"] == Place("floodmark.yml", 9, "batch_rows: 500")
    desk.write("floodmark.yml", b"\xef\xbb\xbfpipelines: 5\r\n")
    assert desk.fails().declared_at == Place("floodmark.yml", 1, "pipelines: 5")


def test_dates_keep_their_zone(desk: Desk, good: str) -> None:
    for written, expected in {
        "2026-01-01T10:00:00+02:00": datetime(2026, 1, 1, 10, tzinfo=timezone(timedelta(hours=2))),
        "2026-01-01T10:00:00Z": datetime(2026, 1, 1, 10, tzinfo=UTC),
        "2026-01-01": datetime(2026, 1, 1),
        '"2026-01-01"': "2026-01-01",
        "2026-13-45": "2026-13-45",
    }.items():
        change = desk.load(good.replace("updated_at}", f"updated_at, start: {written}}}")).pipelines["orders"].change
        assert isinstance(change, TimestampSpec)
        assert change.start == expected


def test_anchors_and_merge_keys(desk: Desk) -> None:
    project = desk.load(
        """
        connections:
          shop: {type: shop, url: x}
          lake: {type: lake, path: y}
        pipelines:
          a:
            source: {connection: shop, table: a}
            change: &ids
              by: sequence
              column: id
              nulls: skip
            target: {connection: lake, table: a, mode: append}
          b:
            source: {connection: shop, table: b}
            change:
              <<: [*ids, {nulls: fail, start: 5}]
              column: b_id
            target: {connection: lake, table: b, mode: append}
        """
    )
    b = project.pipelines["b"]
    assert isinstance(b.change, SequenceSpec)
    assert (b.change.column, b.change.nulls, b.change.start) == ("b_id", "skip", 5)
    assert b.places["change.column"].line == 16
    assert b.places["change.nulls"].line == 10
    assert b.places["change.start"].line == 15


@pytest.mark.parametrize(
    ("text", "line", "words", "hint"),
    [
        ("pipelines:\n  a: b: c\n", 2, "mapping values are not allowed here", "a value that holds ': ' needs quotes"),
        ("pipelines:\n\t- b\n", 2, "cannot start any token", "spaces"),
        ("a: 1\npipelines: [1,\nb: 2\n", 2, "expected ',' or ']'", "never closed"),
        ("a: 1\nb: 'abc\n", 2, "end of stream", "quote"),
        ("a: 1\nb: *x\n", 2, "undefined alias", "&"),
        ("a: 1\nb: @x\n", 2, "'@'", "quotes"),
        ("a: 1\n---\nb: 2\n", 2, "another document", "'---'"),
        ("a: {b: 1,\n  c: ${X}}\n", 2, "expected ',' or '}'", '"${NAME}"'),
        ("a: 1\nb: \x01\n", 2, "special characters", ""),
        ("a: 1\nb: !python/object:x 3\n", 2, "!python/object:x", ""),
    ],
)
def test_broken_yaml(desk: Desk, text: str, line: int, words: str, hint: str) -> None:
    error = desk.fails(text)
    assert error.message.startswith("floodmark.yml is not valid YAML: ")
    assert words in error.message
    assert error.declared_at is not None
    assert (error.declared_at.file, error.declared_at.line) == ("floodmark.yml", line)
    assert error.declared_at.text == text.split("\n")[line - 1].strip()
    assert hint in (error.hint or "")
    assert error.exit_code == 2


def test_a_key_set_twice_names_both_lines(desk: Desk, good: str) -> None:
    error = desk.fails(good + "    batch_rows: 7\n")
    assert error.message == "'batch_rows' is set twice in pipelines.orders"
    assert error.declared_at == Place("floodmark.yml", 10, "batch_rows: 7")
    assert error.hint == "first at floodmark.yml:9"


def test_a_pipeline_set_twice(desk: Desk, good: str) -> None:
    error = desk.fails(good + "  orders: {}\n")
    assert error.message == "'orders' is set twice in pipelines"
    assert str(error.declared_at) == "floodmark.yml:10"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "floodmark.yml is empty"),
        ("# nothing here\n", "floodmark.yml is empty"),
        ("- a\n- b\n", "expected sections such as `connections:` and `pipelines:`, got a list"),
        ("hello\n", "expected sections such as `connections:` and `pipelines:`, got text"),
    ],
)
def test_not_a_project_at_all(desk: Desk, text: str, message: str) -> None:
    error = desk.fails(text)
    assert error.message == message
    assert str(error.declared_at) == "floodmark.yml:1"


def test_a_file_that_is_not_there(desk: Desk) -> None:
    error = desk.fails(file="conf/floodmark.yml")
    assert error.message == "can't read conf/floodmark.yml: no such file"
    assert error.declared_at == Place("conf/floodmark.yml", 1)
    assert error.hint is not None
    assert "-f" in error.hint


def test_a_folder_instead_of_a_file(desk: Desk) -> None:
    (desk.folder / "conf").mkdir()
    assert desk.fails(file="conf").message == "can't read conf: is a directory"


def test_nested_too_deeply(desk: Desk) -> None:
    assert desk.fails("a: " + "[" * 1000).message == "floodmark.yml is nested too deeply"


@pytest.mark.parametrize("seed", range(8))
def test_whatever_the_file_holds_the_error_has_a_place(desk: Desk, good: str, seed: int) -> None:
    random = Random(seed)
    pieces = [*"{}[]:,-#&*!|>'\"%@$\t\n ", "${", "<<: ", "- ", "? ", "!!int ", "~", "1: ", "2026-99-99", "\x00", "é"]
    places: list[tuple[Place | None, str]] = []
    for _ in range(60):
        text = good
        for _ in range(random.randint(1, 3)):
            start = random.randrange(len(text))
            text = text[:start] + random.choice(pieces) + text[start + random.randrange(3) :]
        desk.write("floodmark.yml", text.encode())
        try:
            desk.load()
        except ConfigError as error:
            places.append((error.declared_at, text))
    assert len(places) > 10
    for place, text in places:
        assert place is not None, text
        assert 1 <= place.line <= len(text.splitlines()) + 1, text


def test_not_utf8(desk: Desk) -> None:
    desk.write("floodmark.yml", b"connections:\n  a: \xff\n")
    error = desk.fails()
    assert error.message == "floodmark.yml is not UTF-8 text"
    assert str(error.declared_at) == "floodmark.yml:2"


def test_an_anchor_inside_itself(desk: Desk) -> None:
    error = desk.fails("connections:\n  a: &x\n    b: *x\n")
    assert error.message == "connections.a.b contains itself through an alias"
    assert str(error.declared_at) == "floodmark.yml:3"


def test_a_merge_of_something_else(desk: Desk) -> None:
    error = desk.fails("connections:\n  a:\n    <<: 5\n")
    assert error.message == "`<<` in connections.a takes a mapping declared above"
    assert str(error.declared_at) == "floodmark.yml:3"


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("1", "pipeline name 1 is a number, not text", 'put it in quotes: "1"'),
        ("1.5", "pipeline name 1.5 is a number, not text", 'put it in quotes: "1.5"'),
        ("true", "pipeline name true is a boolean, not text", "choose another name"),
        ("2026-01-01", "pipeline name 2026-01-01 is a date, not text", 'put it in quotes: "2026-01-01"'),
        ("yes", "pipeline name 'yes' means true or false to many YAML readers", "choose another name"),
        ("Off", "pipeline name 'Off' means true or false to many YAML readers", "choose another name"),
        ("''", "a pipeline name is empty", "give it a name"),
        ("'  '", "a pipeline name is empty", "give it a name"),
        ("~", "a pipeline name is empty", "give it a name"),
        ("[a, b]", "a pipeline name is a list, not text", None),
    ],
)
def test_names_of_pipelines(desk: Desk, good: str, name: str, message: str, hint: str | None) -> None:
    error = desk.fails(good.replace("  orders:", f"  {name}:"))
    assert error.message == message
    assert error.hint == hint
    assert str(error.declared_at) == "floodmark.yml:5"


def test_names_of_connections_and_other_keys(desk: Desk, good: str) -> None:
    assert desk.fails(good.replace("  shop:", "  1:")).message == "connection name 1 is a number, not text"
    error = desk.fails(good.replace("batch_rows:", "7:"))
    assert error.message == "key 7 in pipelines.orders is a number, not text"
    assert str(error.declared_at) == "floodmark.yml:9"


def test_importing_config_loads_neither_ruamel_nor_spark() -> None:
    code = (
        "import sys, floodmark.config\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('ruamel', 'pyspark') or m == 'floodmark.registry'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_file_may_be_a_path_object(desk: Desk, good: str) -> None:
    desk.write("floodmark.yml", good)
    assert desk.load(file=Path("floodmark.yml")).pipelines.keys() == {"orders"}
