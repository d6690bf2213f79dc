"""The source's columns change: evolve, freeze, discard, and declared renames."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lab import Lab, ok

from floodmark.errors import TargetError

TARGET = "{{connection: lake, table: orders, mode: upsert, keys: [id], schema_changes: {policy}}}"


def evolving(lab: Lab, policy: str = "evolve", mode: str = "upsert") -> Any:
    target = TARGET.format(policy=policy)
    if mode == "append":
        target = f"{{connection: lake, table: orders, mode: append, schema_changes: {policy}}}"
        return lab.project(target=target, mode="append")
    return lab.project(target=target)


def rows(lab: Lab, *columns: str) -> list[tuple[Any, ...]]:
    assert lab.spark is not None
    found = lab.spark.read.format("delta").load(lab.table).select(*columns).orderBy("id")
    return [tuple(row) for row in found.collect()]


def schema(lab: Lab) -> dict[str, str]:
    assert lab.spark is not None
    return dict(lab.spark.read.format("delta").load(lab.table).dtypes)


def change(lab: Lab, *statements: str) -> None:
    for statement in statements:
        lab.execute(statement)


@pytest.mark.parametrize("mode", ["upsert", "append"])
def test_evolve_adds_widens_and_leaves_dropped_columns_empty(pg_lab: Lab, mode: str) -> None:
    change(pg_lab, "ALTER TABLE orders ADD small int, ADD amount numeric(6, 2), ADD gone text")
    change(pg_lab, "INSERT INTO orders VALUES (1, 'a', '2026-01-01', 7, 1.25, 'here')")
    ok(evolving(pg_lab, mode=mode).run("orders"))
    change(
        pg_lab,
        "ALTER TABLE orders ALTER small TYPE bigint, ALTER amount TYPE numeric(12, 4)",
        'ALTER TABLE orders DROP gone, ADD "new one" text',
        """INSERT INTO orders (id, val, updated_at, small, amount, "new one")
           VALUES (2, 'b', '2026-01-02', 5000000000, 12345678.1234, 'new')""",
    )
    if mode == "upsert":
        change(pg_lab, "UPDATE orders SET val = 'a2', updated_at = '2026-01-02' WHERE id = 1")
    result = ok(evolving(pg_lab, mode=mode).run("orders"))
    shown = [tuple(map(str, row)) for row in rows(pg_lab, "id", "val", "small", "amount", "gone", "`new one`")]
    first = "a2" if mode == "upsert" else "a"
    assert shown == [
        ("1", first, "7", "1.2500", "here", "None"),
        ("2", "b", "5000000000", "12345678.1234", "None", "new"),
    ]
    assert {
        "column small grew from int to bigint",
        "column amount grew from decimal(6,2) to decimal(12,4)",
        "column new one is new: added to the table",
        "column gone is gone from the source: new rows have NULL in it",
    } == set(result.notices)
    assert ok(evolving(pg_lab, mode=mode).run("orders")).nothing_new


def test_freeze_refuses_by_name_and_touches_nothing(pg_lab: Lab) -> None:
    pg_lab.fill(2)
    ok(evolving(pg_lab, "freeze").run("orders"))
    before = schema(pg_lab)
    change(pg_lab, "ALTER TABLE orders ADD extra int", "UPDATE orders SET updated_at = '2026-01-02'")
    failure = evolving(pg_lab, "freeze").run("orders").failure
    assert isinstance(failure, TargetError)
    assert failure.message.endswith("`schema_changes` is freeze: extra is new")
    assert failure.hint is not None
    assert "schema_changes: evolve" in failure.hint
    assert schema(pg_lab) == before
    assert ok(evolving(pg_lab).run("orders")).success
    assert schema(pg_lab)["extra"] == "int"


def test_discard_keeps_the_table_and_refuses_what_does_not_fit(pg_lab: Lab) -> None:
    change(pg_lab, "ALTER TABLE orders ADD small int", "INSERT INTO orders VALUES (1, 'a', '2026-01-01', 7)")
    ok(evolving(pg_lab, "discard").run("orders"))
    before = schema(pg_lab)
    change(pg_lab, "ALTER TABLE orders ADD extra int, ALTER small TYPE bigint")
    change(pg_lab, "INSERT INTO orders VALUES (2, 'b', '2026-01-02', 8, 9)")
    told = ok(evolving(pg_lab, "discard").run("orders")).notices
    assert [notice for notice in told if notice.startswith("column ")] == [
        "column small is bigint in the source: cast back to int, since `schema_changes` is discard",
        "column extra is new: left out, since `schema_changes` is discard",
    ]
    assert schema(pg_lab) == before
    assert rows(pg_lab, "id", "small") == [(1, 7), (2, 8)]
    change(pg_lab, "INSERT INTO orders VALUES (3, 'c', '2026-01-03', 5000000000, 9)")
    result = evolving(pg_lab, "discard").run("orders")
    assert 'column "small" holds 5000000000, which does not fit into int' in result.errors[0]
    assert rows(pg_lab, "id") == [(1,), (2,)]
    change(pg_lab, "DELETE FROM orders WHERE id = 3", "ALTER TABLE orders DROP small")
    change(pg_lab, "INSERT INTO orders VALUES (4, 'd', '2026-01-04', 9)")
    told = ok(evolving(pg_lab, "discard").run("orders")).notices
    assert "column small is gone from the source: new rows have NULL in it" in told


def test_types_that_have_nothing_in_common_are_refused(pg_lab: Lab) -> None:
    pg_lab.fill(1)
    ok(evolving(pg_lab).run("orders"))
    change(pg_lab, "ALTER TABLE orders ALTER val TYPE bytea USING val::bytea", "UPDATE orders SET updated_at = now()")
    failure = evolving(pg_lab).run("orders").failure
    assert isinstance(failure, TargetError)
    assert "val was string and is binary" in failure.message


def test_a_narrower_column_still_fits(pg_lab: Lab) -> None:
    change(pg_lab, "ALTER TABLE orders ADD big bigint", "INSERT INTO orders VALUES (1, 'a', '2026-01-01', 7)")
    ok(evolving(pg_lab, "freeze").run("orders"))
    change(pg_lab, "ALTER TABLE orders ALTER big TYPE int", "UPDATE orders SET big = 8, updated_at = '2026-01-02'")
    ok(evolving(pg_lab, "freeze").run("orders"))
    assert rows(pg_lab, "id", "big") == [(1, 8)]


def test_declared_renames_also_of_key_and_cursor(pg_lab: Lab) -> None:
    pg_lab.fill(2)
    ok(pg_lab.project().run("orders"))
    change(
        pg_lab,
        "ALTER TABLE orders RENAME id TO order_id",
        "ALTER TABLE orders RENAME updated_at TO changed",
        "ALTER TABLE orders RENAME val TO value",
        "UPDATE orders SET value = 'x', changed = '2026-02-01' WHERE order_id = 2",
    )
    renames = "renames: {id: order_id, updated_at: changed, val: value}"
    declared = {
        "change": "{by: timestamp, column: changed, delay: 0s}",
        "target": f"{{connection: lake, table: orders, mode: upsert, keys: [order_id], {renames}}}",
    }
    result = ok(pg_lab.project(**declared).run("orders"))
    assert result.rows.updated == 1
    assert set(schema(pg_lab)) == {"order_id", "value", "changed"}
    assert rows_by(pg_lab, "order_id", "value") == [(1, "v1"), (2, "x")]
    # The declaration stays in the file and does nothing more; the windows went on under the new name.
    change(pg_lab, "UPDATE orders SET value = 'y', changed = '2026-02-02' WHERE order_id = 1")
    result = ok(pg_lab.project(**declared).run("orders"))
    assert result.rows.updated == 1
    assert not any("renames" in notice for notice in result.notices)
    assert ok(pg_lab.project(**declared).run("orders")).nothing_new


def test_a_rename_that_meets_no_column_is_told(sqlite_lab: Lab) -> None:
    sqlite_lab.fill(2)
    ok(sqlite_lab.project().run("orders"))
    sqlite_lab.execute("ALTER TABLE orders ADD COLUMN note TEXT")
    sqlite_lab.execute("UPDATE orders SET note = 'n', updated_at = '2026-02-01 00:00:00' WHERE id = 1")
    renames = "renames: {vol: vla, vla: note, val: walue}"
    target = f"{{connection: lake, table: orders, mode: upsert, keys: [id], {renames}}}"
    result = ok(sqlite_lab.project(target=target).run("orders"))
    assert [notice for notice in result.notices if "renames" in notice] == [
        "`renames` has vla: note, but the table has no column vla",
        "`renames` has val: walue, but the source has no column walue",
    ]


def rows_by(lab: Lab, *columns: str) -> list[tuple[Any, ...]]:
    assert lab.spark is not None
    found = lab.spark.read.format("delta").load(lab.table).select(*columns).orderBy(columns[0])
    return [tuple(row) for row in found.collect()]
