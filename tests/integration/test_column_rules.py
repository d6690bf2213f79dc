"""Rules on columns: nothing behind them sees what they take away."""

from __future__ import annotations

import hashlib
import textwrap
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from tests.lab import Lab, ok

from floodmark.errors import ConfigError
from floodmark.model.rules import ColumnRule
from floodmark.model.spec import PipelineSpec
from floodmark.model.table import Column, TableInfo
from floodmark.opening import load
from floodmark.shape.rules import apply_rules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILL = """INSERT INTO orders VALUES
    (1, 'ann@example.org', '2026-01-01', '12.50', '4111 1111 1111 1234', 'secret'),
    (2, NULL, '2026-01-01', NULL, NULL, NULL),
    (3, '', '2026-01-02', '-1', '12', 'x')"""


@pytest.fixture
def people(pg_lab: Lab) -> Lab:
    pg_lab.execute("ALTER TABLE orders ADD amount text, ADD card text, ADD ssn text")
    pg_lab.execute(FILL)
    return pg_lab


def rows(lab: Lab, *columns: str) -> list[tuple[Any, ...]]:
    assert lab.spark is not None
    found = lab.spark.read.format("delta").load(lab.table).select(*columns).orderBy(columns[0])
    return [tuple(row) for row in found.collect()]


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_hash_mask_cast_drop_and_rename(people: Lab) -> None:
    rules = """{val: {hash: sha256, salt: "${THE_SALT}", rename: email}, amount: {cast: "decimal(10, 2)"},
      card: {mask: {keep_last: 4}}, ssn: drop, id: {rename: order_id}}"""
    target = "{connection: lake, table: orders, mode: upsert, keys: [order_id]}"
    project = load(people.write(columns=rules, target=target), variables={"THE_SALT": "pepper"}, spark=people.spark)
    ok(project.run("orders"))
    assert rows(people, "order_id", "email", "amount", "card") == [
        (1, sha("pepperann@example.org"), dec("12.50"), "***1234"),
        (2, None, None, None),
        (3, sha("pepper"), dec("-1.00"), "***"),
    ]
    assert people.spark is not None
    assert set(people.spark.read.format("delta").load(people.table).columns) == {
        "order_id",
        "email",
        "updated_at",
        "amount",
        "card",
    }
    assert "pepper" in project.spec.secrets
    people.execute("UPDATE orders SET amount = '13', updated_at = '2026-01-03' WHERE id = 1")
    assert ok(project.run("orders")).rows.updated == 1
    assert ok(project.run("orders")).nothing_new


def dec(text: str) -> Any:
    from decimal import Decimal

    return Decimal(text)


def test_select_leaves_the_rest_out_and_the_transform_sees_only_what_is_left(people: Lab) -> None:
    project = people.project(
        select="[id, val, updated_at]",
        columns="{val: {mask: all}}",
        transform="{sql: 'select *, upper(val) as shown from source'}",
    )
    ok(project.run("orders"))
    assert rows(people, "id", "val", "shown") == [(1, "***", "***"), (2, None, None), (3, "***", "***")]


def test_a_value_that_does_not_fit_fails_by_name_and_nothing_lands(people: Lab) -> None:
    people.execute("UPDATE orders SET amount = 'twelve' WHERE id = 3")
    result = people.project(columns="{amount: {cast: double}}").run("orders")
    assert 'column "amount" holds twelve, which is no double' in result.errors[0]
    assert DeltaTable(people.table).file_uris() == []
    # The table was made with the wrong type, and nothing is in it: the mended file makes it anew.
    ok(people.project(columns="{amount: {cast: string}}").run("orders"))
    assert rows(people, "id", "amount") == [(1, "12.50"), (2, None), (3, "twelve")]


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"columns": "{vall: drop}"}, 'column "vall" is not in orders'),
        ({"select": "[id, updated_at, nope]"}, 'column "nope" is not in orders'),
        ({"columns": "{updated_at: {hash: sha256}}"}, "the cursor decides which row wins"),
        ({"columns": "{updated_at: drop}"}, "it can't be left out"),
        ({"select": "[id, val]"}, "it can't be left out"),
        ({"columns": "{id: {mask: all}}"}, "two keys may become one by `mask`"),
        ({"columns": "{val: {rename: id}}"}, "two columns would be called id"),
        ({"columns": "{id: drop}"}, 'column "id" of orders is not loaded: `select` or `columns` leaves it out'),
        ({"select": "[val, updated_at]"}, 'column "id" of orders is not loaded'),
    ],
)
def test_rules_that_would_lose_rows_are_refused(people: Lab, declared: dict[str, str], words: str) -> None:
    result = people.project(**declared).run("orders")
    assert isinstance(result.failure, ConfigError)
    assert words in result.errors[0]
    assert result.failure.declared_at is not None


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("{val: {cast: number}}", "'number' is not a type to cast to"),
        ("{val: {hash: sha256, mask: all}}", "a column takes one of hash, mask, not 2 of them"),
        ("{val: {salt: x}}", "`salt` goes with `hash`"),
        ("{val: {hahs: sha256}}", "unknown key 'hahs' in pipelines.orders.columns.val"),
        ("{val: dorp}", "val 'dorp' is not one of 'drop'"),
        ("{val: {mask: most}}", "mask 'most' is not one of 'all'"),
    ],
)
def test_mistakes_in_a_rule_are_found_offline_with_their_line(people: Lab, rule: str, words: str) -> None:
    path = people.write(columns=rule)
    with pytest.raises(ConfigError) as raised:
        load(path)
    assert words in raised.value.message
    assert raised.value.declared_at is not None
    line = path.read_text().splitlines()[raised.value.declared_at.line - 1]
    assert textwrap.dedent(line).startswith("columns:")


def test_provenance_says_by_which_load_a_row_came(lab: Lab) -> None:
    lab.fill(2)
    target = "{connection: lake, table: orders, mode: upsert, keys: [id], provenance: true}"
    ok(lab.project().run("orders"))
    lab.insert((3, "new", "2026-01-02 10:00:00"))
    # Turned on later: rows from before hold NULL.
    project = lab.project(target=target)
    ok(project.run("orders"))
    lab.execute("UPDATE orders SET val = 'changed', updated_at = '2026-01-03 10:00:00' WHERE id = 3")
    ok(project.run("orders"))
    lab.execute("UPDATE orders SET val = 'v1!', updated_at = '2026-01-04 10:00:00' WHERE id = 1")
    second = ok(project.run("orders"))
    found = rows(lab, "id", "_floodmark_op", "_floodmark_batch", "_floodmark_loaded_at")
    assert [(i, op) for i, op, _, _ in found] == [(1, "update"), (2, None), (3, "update")]
    assert found[0][2] != found[2][2]
    assert all((batch is None) == (at is None) == (op is None) for _, op, batch, at in found)
    assert second.rows.updated == 1
    assert ok(project.run("orders")).nothing_new


def test_provenance_of_an_append_is_the_batch(lab: Lab) -> None:
    lab.fill(3)
    project = lab.project(mode="append", target="{connection: lake, table: orders, mode: append, provenance: true}")
    ok(project.run("orders"))
    lab.fill(2, start=4)
    ok(project.run("orders"))
    found = rows(lab, "id", "_floodmark_op", "_floodmark_batch")
    assert {op for _, op, _ in found} == {"insert"}
    assert len({batch for _, _, batch in found}) == 2
    assert ok(project.backfill("orders", "1", "3")).rows.inserted == 2
    assert len(rows(lab, "id")) == 5


@pytest.mark.parametrize(
    ("declared", "value", "cast", "lands"),
    [
        ("string", "'1.125'", "decimal(10,2)", None),
        ("string", "'1.1200'", "decimal(10,2)", "1.12"),
        ("string", "'1e-40'", "decimal(10,2)", None),
        ("string", "'12e-1'", "decimal(10,2)", "1.20"),
        ("string", "'1200E-5'", "decimal(10,2)", None),
        ("string", "'1e3'", "decimal(10,2)", "1000.00"),
        ("decimal(10,3)", "1.125", "decimal(10,2)", None),
        ("decimal(10,3)", "1.120", "decimal(10,2)", "1.12"),
        ("decimal(10,3)", "1.125", "double", "1.125"),
        ("decimal(10,3)", "1.5", "int", None),
        ("double", "1.125", "decimal(10,2)", None),
        ("double", "0.1", "decimal(10,2)", "0.10"),
        ("double", "1e300", "float", None),
        ("double", "0.1", "float", "0.1"),
        ("bigint", "9007199254740993", "double", None),
        ("string", "'2026-11-15'", "date", "2026-11-15"),
        ("string", "'2026-11-15 10:00:00'", "date", None),
        ("string", "'10:00:00'", "timestamp", None),
        ("string", "'2026-11-15 10:00:00.1234567'", "timestamp", None),
        ("string", "'2026-11-15 10:00:00+02'", "timestamp", "2026-11-15 08:00:00"),
        ("string", "'2026-11-15 10:00:00+02'", "timestamp_ntz", None),
        ("timestamp_ntz", "'2026-11-15 10:00:00'", "date", None),
        ("timestamp_ntz", "'2026-11-15 00:00:00'", "date", "2026-11-15"),
        ("binary", "x'ff'", "string", None),
    ],
)
def test_a_cast_keeps_the_value_or_fails(
    declared: str, value: str, cast: str, lands: str | None, spark: SparkSession
) -> None:
    frame = spark.sql(f"SELECT CAST({value} AS {declared}) AS x")
    rules = {"x": ColumnRule(cast=cast)}
    spec = PipelineSpec.model_construct(name="p", columns=rules, select=())
    result = apply_rules(frame, spec, TableInfo("t", (Column("x", declared, "other"),)))
    if lands is None:
        with pytest.raises(Exception, match=r'column "x" holds .*, which is no .*; to round or cut it'):
            result.collect()
    else:
        assert result.selectExpr("cast(x AS string)").collect()[0][0] == lands
