from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from floodmark.errors import Place

if TYPE_CHECKING:
    from tests.unit.config.conftest import Desk

CONNECTIONS = """
connections:
  shop: {type: shop, url: x}
  lake: {type: lake, path: y}
"""


def pipeline(name: str, table: str | None = None) -> str:
    return (
        f"pipelines:\n"
        f"  {name}:\n"
        f"    source: {{connection: shop, table: {name}}}\n"
        f"    change: {{by: sequence, column: id}}\n"
        f"    target: {{connection: lake, table: {table or name}, mode: append}}\n"
    )


def test_one_file_by_name(desk: Desk) -> None:
    desk.write("connections.yml", CONNECTIONS)
    project = desk.load("include: connections.yml\n" + pipeline("a"))
    assert project.connections.keys() == {"shop", "lake"}


def test_lists_and_patterns_relative_to_the_including_file(desk: Desk) -> None:
    desk.write("conf/shared/connections.yml", CONNECTIONS)
    desk.write("conf/pipelines/b.yml", pipeline("b"))
    desk.write("conf/pipelines/a.yml", pipeline("a"))
    desk.write("conf/floodmark.yml", "include: [shared/connections.yml, 'pipelines/*.yml']\n")
    project = desk.load(file="conf/floodmark.yml")
    assert list(project.pipelines) == ["a", "b"]
    assert project.root == str(desk.folder / "conf")
    assert project.pipelines["b"].at("source") == Place(
        "conf/pipelines/b.yml", 3, "source: {connection: shop, table: b}"
    )


def test_includes_of_includes(desk: Desk) -> None:
    desk.write("a/one.yml", "include: ../b/two.yml\n" + pipeline("one"))
    desk.write("b/two.yml", CONNECTIONS + pipeline("two"))
    project = desk.load("include: a/one.yml\n" + pipeline("zero"))
    assert project.pipelines.keys() == {"zero", "one", "two"}
    assert str(project.pipelines["two"].at()) == "b/two.yml:5"


def test_a_file_included_twice_is_read_once(desk: Desk) -> None:
    desk.write("base.yml", CONNECTIONS)
    desk.write("a.yml", "include: base.yml\n" + pipeline("a"))
    desk.write("b.yml", "include: ./base.yml\n" + pipeline("b"))
    assert desk.load("include: [a.yml, b.yml, base.yml]\n").pipelines.keys() == {"a", "b"}


def test_a_pattern_leaves_out_the_file_that_says_it(desk: Desk) -> None:
    desk.write("a.yml", CONNECTIONS + pipeline("a"))
    assert desk.load("include: '*.yml'\n" + pipeline("b")).pipelines.keys() == {"a", "b"}


def test_a_pattern_in_a_folder_with_brackets_in_its_name(desk: Desk) -> None:
    desk.write("[x]/a.yml", CONNECTIONS + pipeline("a"))
    desk.write("[x]/floodmark.yml", "include: 'a*.yml'\n")
    assert desk.load(file="[x]/floodmark.yml").pipelines.keys() == {"a"}


def test_include_may_hold_variables(desk: Desk) -> None:
    desk.write("prod.yml", CONNECTIONS)
    desk.write("dev.yml", CONNECTIONS.replace("y}", "dev}"))
    text = 'include: "${STAGE}.yml"\nvariables: {STAGE: dev}\n' + pipeline("a")
    assert desk.load(text).connections["lake"].model_dump()["path"] == "dev"
    assert desk.load(text, environ={"STAGE": "prod"}).connections["lake"].model_dump()["path"] == "y"


def test_an_unset_variable_in_include(desk: Desk) -> None:
    error = desk.fails('state: x\ninclude: "${STAGE}.yml"\n' + pipeline("a"))
    assert error.message == "variable STAGE is not set"
    assert str(error.declared_at) == "floodmark.yml:2"


def test_variables_defaults_and_spark_are_merged_and_the_including_file_wins(desk: Desk) -> None:
    desk.write(
        "base.yml",
        CONNECTIONS
        + "variables: {A: below, B: below}\n"
        + "defaults:\n  batch_rows: 1\n  source: {fetch_size: 5, partitions: 2}\n"
        + "spark: {master: below, config: {a: 1, b: 1}}\n",
    )
    project = desk.load(
        "include: base.yml\n"
        'variables: {A: "above"}\n'
        "defaults:\n  source: {fetch_size: 6}\n"
        "spark: {config: {b: 2}}\n" + pipeline("a", '"${A}-${B}"')
    )
    a = project.pipelines["a"]
    assert a.target.table == "above-below"
    assert (a.batch_rows, a.source.fetch_size, a.source.partitions) == (1, 6, 2)
    assert project.spark.master == "below"
    assert project.spark.config == {"a": 1, "b": 2}
    assert str(a.at("batch_rows")) == "base.yml:6"
    assert str(a.at("source.fetch_size")) == "floodmark.yml:4"


def test_of_two_includes_the_later_wins(desk: Desk) -> None:
    desk.write("one.yml", "defaults: {batch_rows: 1}\n")
    desk.write("two.yml", "defaults: {batch_rows: 2}\n")
    project = desk.load("include: [one.yml, two.yml]\n" + CONNECTIONS + pipeline("a"))
    assert project.pipelines["a"].batch_rows == 2


@pytest.mark.parametrize(
    ("section", "what", "line", "other"),
    [
        (pipeline("a"), "pipeline 'a'", 7, 2),
        ("connections:\n  lake: {type: lake, path: z}\n", "connection 'lake'", 5, 2),
        ("state: file:x\n", "state", 2, 1),
    ],
)
def test_defined_in_two_files(desk: Desk, section: str, what: str, line: int, other: int) -> None:
    desk.write("other.yml", section)
    error = desk.fails("include: other.yml\nstate: file:y" + CONNECTIONS + pipeline("a"))
    assert error.message == f"{what} is defined twice"
    assert str(error.declared_at) == f"floodmark.yml:{line}"
    assert error.hint == f"the other is at other.yml:{other}"


def test_cycles(desk: Desk) -> None:
    desk.write("b.yml", "state: x\ninclude: sub/c.yml\n")
    desk.write("sub/c.yml", "include:\n  - ../floodmark.yml\n")
    error = desk.fails("include: b.yml\n")
    assert error.message == "files include each other: floodmark.yml → b.yml → sub/c.yml → floodmark.yml"
    assert str(error.declared_at) == "sub/c.yml:2"


def test_a_file_that_includes_itself(desk: Desk) -> None:
    error = desk.fails("include: floodmark.yml\n")
    assert error.message == "files include each other: floodmark.yml → floodmark.yml"


@pytest.mark.parametrize(
    ("include", "message"),
    [
        ("nothing.yml", "can't include 'nothing.yml': no such file"),
        ("p/*.yml", "can't include 'p/*.yml': matches no file"),
        ("''", "include must be a file or a list of files"),
        ("5", "include must be a file or a list of files"),
        ("{a: b}", "include must be a file or a list of files"),
        ("[[a.yml]]", "include.0 must be a file or a list of files"),
    ],
)
def test_nothing_to_include(desk: Desk, include: str, message: str) -> None:
    error = desk.fails(f"state: x\ninclude: {include}\n")
    assert error.message == message
    assert str(error.declared_at) == "floodmark.yml:2"


def test_errors_point_into_the_included_file(desk: Desk) -> None:
    desk.write("p/a.yml", "# a comment\n" + pipeline("a").replace("column", "colunm"))
    error = desk.fails("include: p/a.yml\n" + CONNECTIONS)
    assert error.message == "unknown key 'colunm' in pipelines.a.change"
    assert error.declared_at == Place("p/a.yml", 5, "change: {by: sequence, colunm: id}")


def test_syntax_and_top_level_errors_in_an_included_file(desk: Desk) -> None:
    desk.write("p/a.yml", "pipelines: {\n")
    assert str(desk.fails("include: p/a.yml\n").declared_at) == "p/a.yml:1"
    desk.write("p/a.yml", "state: x\npipeline: {}\n")
    error = desk.fails("include: p/a.yml\n" + CONNECTIONS)
    assert error.message == "unknown key 'pipeline' at the top level"
    assert str(error.declared_at) == "p/a.yml:2"
    desk.write("p/a.yml", "")
    assert desk.fails("include: p/a.yml\n").message == "p/a.yml is empty"
