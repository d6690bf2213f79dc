"""Extreme values where they steer the load: as cursor, key and partition."""

from __future__ import annotations

import pytest
from tests.lab import Lab, ok

from floodmark.errors import SourceError


def test_the_first_and_last_bigint_as_cursor(lab: Lab) -> None:
    lab.insert((-(2**63), "first", "2026-01-01 10:00:00"), (2**63 - 1, "last", "2026-01-01 10:00:00"))
    project = lab.project(mode="append", batch_rows=1)
    result = ok(project.run("orders"))
    assert (result.rows.inserted, result.slices) == (2, 2)
    lab.assert_equal()
    assert ok(project.run("orders")).nothing_new
    lab.insert((0, "late", "2026-01-01 10:00:00"))
    project.reset("orders", str(-(2**63)))
    assert ok(project.run("orders")).rows.inserted == 3
    lab.assert_equal()


def test_times_from_the_first_year_to_the_last_as_cursor_and_partition(lab: Lab) -> None:
    times = ("0001-01-01 00:00:00", "1500-02-28 23:59:59.999999", "1899-12-31 23:59:59.5", "9999-12-31 23:59:59")
    lab.insert(*((number, "v", at) for number, at in enumerate(times, 1)))
    target = "{connection: lake, table: orders, mode: upsert, keys: [id], partition_by: [updated_at]}"
    project = lab.project(target=target, batch_rows=1)
    assert ok(project.run("orders")).rows.inserted == 4
    lab.execute("UPDATE orders SET val = 'new', updated_at = '9999-12-31 23:59:59.5' WHERE id = 2")
    assert ok(project.run("orders")).rows.updated == 1
    assert lab.target_rows() == [
        (1, "v", "0001-01-01 00:00:00.000000"),
        (2, "new", "9999-12-31 23:59:59.500000"),
        (3, "v", "1899-12-31 23:59:59.500000"),
        (4, "v", "9999-12-31 23:59:59.000000"),
    ]


@pytest.mark.parametrize("value", ["infinity", "20266-01-01"])
def test_a_time_that_no_position_can_be_is_named(pg_lab: Lab, value: str) -> None:
    pg_lab.fill(1)
    pg_lab.execute(f"INSERT INTO orders VALUES (2, 'odd', '{value}')")
    with pytest.raises(SourceError) as caught:
        pg_lab.project().plan("orders")
    assert 'column "updated_at" of orders holds a value that can\'t be a position' in caught.value.message
    assert value in caught.value.message
    assert caught.value.declared_at is not None


def test_a_time_without_end_below_the_cursor_s_highest_is_refused_by_the_load(pg_lab: Lab) -> None:
    pg_lab.fill(1)
    pg_lab.execute("INSERT INTO orders VALUES (2, 'odd', '-infinity')")
    result = pg_lab.project().run("orders")
    assert 'column "updated_at" of orders holds -infinity' in result.errors[0]
    assert "(the row with id = 2)" in result.errors[0]


@pytest.mark.parametrize("kind", ["uuid", "char(5)", "numeric(38,0)", "bytea", "timestamp", "date", "oid"])
def test_keys_of_other_types_find_their_rows_again(pg_lab: Lab, kind: str) -> None:
    values = {
        "uuid": "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
        "char(5)": "'ab'",
        "numeric(38,0)": "99999999999999999999999999999999999999",
        "bytea": "'\\x00ff'",
        "timestamp": "'1500-02-28 23:59:59.999999'",
        "date": "'0044-03-15 BC'",
        "oid": "4294967295",
    }
    pg_lab.execute(f"CREATE TABLE k (k {kind} PRIMARY KEY, v bigint NOT NULL)")
    pg_lab.execute(f"INSERT INTO k VALUES ({values[kind]}, 1)")
    project = pg_lab.project(
        source="{connection: shop, table: k}",
        change="{by: sequence, column: v, delay: 0s}",
        target="{connection: lake, table: k, mode: upsert, keys: [k]}",
    )
    assert ok(project.run("orders")).rows.inserted == 1
    pg_lab.execute("UPDATE k SET v = 2")
    rows = ok(project.run("orders")).rows
    assert (rows.inserted, rows.updated) == (0, 1)
