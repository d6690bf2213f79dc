from __future__ import annotations

from typing import TYPE_CHECKING

from floodmark.errors import Place
from floodmark.model.spec import FullSpec, SequenceSpec, TimestampSpec

if TYPE_CHECKING:
    from tests.unit.config.conftest import Desk

HEAD = """\
connections:
  shop: {type: shop, url: x}
  lake: {type: lake, path: y}
"""


def test_what_a_pipeline_leaves_out_is_inherited_with_its_line(desk: Desk) -> None:
    project = desk.load(
        HEAD
        + """\
defaults:
  source: {connection: shop, fetch_size: 7}
  change: {by: timestamp, column: updated_at}
  target: {connection: lake, mode: upsert, keys: [id, part]}
  transform: {sql: select * from source}
  batch_rows: 9
pipelines:
  a:
    source: {table: a}
    target:
      table: a
      keys: [a_id]
"""
    )
    a = project.pipelines["a"]
    assert (a.source.connection, a.source.fetch_size, a.source.table) == ("shop", 7, "a")
    assert a.target.keys == ("a_id",)
    assert a.transform is not None
    assert a.batch_rows == 9
    assert a.places["source"].line == 12
    assert a.places["source.connection"] == Place("floodmark.yml", 5, "source: {connection: shop, fetch_size: 7}")
    assert a.places["change"].line == 6
    assert a.places["change.column"].line == 6
    assert a.places["target.mode"].line == 7
    assert a.places["target.keys"] == Place("floodmark.yml", 15, "keys: [a_id]")
    assert "target.keys.1" not in a.places


def test_a_pipeline_may_consist_of_defaults_only(desk: Desk) -> None:
    text = """\
defaults:
  source: {connection: shop, table: t}
  change: {by: none}
  target: {connection: lake, table: t, mode: replace}
pipelines:
  a:
"""
    assert isinstance(desk.load(HEAD + text).pipelines["a"].change, FullSpec)


def load_change(desk: Desk, default: str, own: str, mode: str = "append") -> object:
    text = f"""\
defaults:
  change: {default}
pipelines:
  a:
    source: {{connection: shop, table: t}}
    change: {own}
    target: {{connection: lake, table: t, mode: {mode}}}
"""
    return desk.load(HEAD + text).pipelines["a"].change


def test_another_kind_of_change_starts_clean(desk: Desk) -> None:
    default = "{by: timestamp, column: updated_at, timezone: UTC, start: 2026-01-01}"
    assert load_change(desk, default, "{by: sequence, column: id}") == SequenceSpec(by="sequence", column="id")
    assert load_change(desk, default, "{by: none}", "replace") == FullSpec(by="none")


def test_the_same_kind_of_change_inherits(desk: Desk) -> None:
    change = load_change(desk, "{by: timestamp, column: u, timezone: UTC}", "{by: timestamp, nulls: skip}")
    assert change == TimestampSpec(by="timestamp", column="u", timezone="UTC", nulls="skip")


def test_column_and_columns_do_not_mix(desk: Desk) -> None:
    change = load_change(desk, "{by: sequence, columns: [a, b], nulls: skip}", "{column: c}")
    assert change == SequenceSpec(by="sequence", column="c", nulls="skip")
    change = load_change(desk, "{by: sequence, column: c}", "{columns: [a, b]}")
    assert change == SequenceSpec(by="sequence", columns=("a", "b"))


def test_defaults_for_cursors_leave_a_full_read_alone(desk: Desk) -> None:
    assert load_change(desk, "{nulls: skip, timezone: UTC}", "{by: none}", "replace") == FullSpec(by="none")
    change = load_change(desk, "{nulls: skip, timezone: UTC}", "{by: sequence, column: c}")
    assert change == SequenceSpec(by="sequence", column="c", nulls="skip")


def test_a_pipelines_own_unfitting_key_is_still_an_error(desk: Desk) -> None:
    error = desk.fails(
        HEAD
        + """\
defaults: {change: {by: none}}
pipelines:
  a:
    source: {connection: shop, table: t}
    change: {nulls: skip}
    target: {connection: lake, table: t, mode: replace}
"""
    )
    assert error.message == "unknown key 'nulls' in pipelines.a.change"
    assert str(error.declared_at) == "floodmark.yml:8"


def test_other_pairs_that_exclude_each_other(desk: Desk) -> None:
    text = """\
defaults:
  change: {by: sequence, column: id}
  target: {connection: lake, mode: append, cluster_by: [day]}
  transform: {sql: select 1}
pipelines:
  a:
    source: {connection: shop, table: a}
    target: {table: a, partition_by: [month]}
    transform: {python: "module:function"}
  b:
    source: {connection: shop, table: b}
    target: {table: b}
    transform: null
"""
    pipelines = desk.load(HEAD + text).pipelines
    assert pipelines["a"].target.partition_by == ("month",)
    assert pipelines["a"].target.cluster_by == ()
    assert pipelines["a"].transform is not None
    assert pipelines["a"].transform.sql is None
    assert pipelines["b"].target.cluster_by == ("day",)
    assert pipelines["b"].transform is None


MISSPELT = """\
defaults:
  target: {connection: lake, modus: append, mode: append}
  change: {by: sequence, column: id, nuls: skip}
  name: x
pipelines:
  a:
    source: {connection: shop, table: a}
    target: {table: a}
  b:
    source: {connection: shop, table: b}
    target: {table: b}
"""


def test_what_is_wrong_in_the_defaults_is_told_once_and_there(desk: Desk) -> None:
    error = desk.fails(HEAD + MISSPELT)
    assert error.message == "unknown key 'modus' in defaults.target"
    assert error.pipeline is None
    assert str(error.declared_at) == "floodmark.yml:5"
    assert error.hint is not None
    assert error.hint.splitlines()[1] == "2 more problems:"
    assert "floodmark.yml:6  unknown key 'nuls' in defaults.change (did you mean nulls?" in error.hint
    assert "floodmark.yml:7  unknown key 'name' in defaults" in error.hint


def test_what_is_missing_is_missing_in_the_pipeline(desk: Desk) -> None:
    error = desk.fails(
        HEAD
        + """\
defaults:
  source: {connection: shop}
  change: {by: none}
  target: {connection: lake, mode: replace}
pipelines:
  a:
    target: {table: a}
"""
    )
    assert error.message == "missing option 'table' in pipelines.a.source"
    assert error.declared_at == Place("floodmark.yml", 9, "a:")
    assert error.pipeline == "a"
    assert error.hint == (
        "The table to read, or instead of it a `query`, or a pattern of `tables`. Set it here or under defaults."
    )


def test_a_section_overridden_by_something_else(desk: Desk, good: str) -> None:
    text = good.replace("source: {connection: shop, table: public.orders}", "source:") + "defaults: {source: {}}\n"
    error = desk.fails(text)
    assert error.message == "pipelines.orders.source: expected a mapping, got nothing"
    assert str(error.declared_at) == "floodmark.yml:6"
