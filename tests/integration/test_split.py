"""Several readers: each row is read by exactly one of them, and each has about as much to do."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.lab import Lab

from floodmark.connections.mysql import MysqlConnection
from floodmark.connections.postgres import PostgresConnection
from floodmark.model.position import Position
from floodmark.model.spec import PipelineSpec
from floodmark.model.table import Cursor
from floodmark.ports import ReadRequest
from floodmark.sources.mysql.source import MysqlSource
from floodmark.sources.postgres.source import PostgresSource
from floodmark.sources.split import key_of, split_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CREATE = {
    "postgres": (
        "CREATE TABLE mixed (id uuid PRIMARY KEY, n bigint, word text, at timestamp(3), day timestamptz)",
        "INSERT INTO mixed SELECT gen_random_uuid(), nullif(i % 7, 0), nullif(chr(64 + i % 40), 'C'), "
        "CASE WHEN i % 5 > 0 THEN timestamp '2026-10-25 01:00' + i % 11 * interval '7 minutes' END, "
        "CASE WHEN i % 3 > 0 THEN timestamptz '2026-10-25 01:00+02' + i % 13 * interval '1 hour' END "
        "FROM generate_series(1, 300) i",
    ),
    "mariadb": (
        "CREATE TABLE mixed (id uuid PRIMARY KEY, n bigint unsigned, "
        "word varchar(9) COLLATE utf8mb4_general_ci, at datetime(3), day timestamp NULL)",
        "INSERT INTO mixed SELECT uuid(), nullif(seq % 7, 0) * 2000000000000000000, nullif(char(64 + seq % 40), 'C'), "
        "CASE WHEN seq % 5 > 0 THEN timestamp'2026-10-25 01:00:00' + INTERVAL seq % 11 * 7 MINUTE END, "
        "CASE WHEN seq % 3 > 0 THEN timestamp'2026-10-25 01:00:00' + INTERVAL seq % 13 HOUR END FROM seq_1_to_300",
    ),
}


def source_of(lab: Lab, table: str, partitions: int | None = None) -> Any:
    spec = PipelineSpec.model_validate(
        {
            "name": "p",
            "source": {"connection": "c", "table": table, "partitions": partitions},
            "change": {"by": "none"},
            "target": {"connection": "t", "table": "t", "mode": "replace"},
        }
    )
    if lab.kind == "postgres":
        return PostgresSource(PostgresConnection.model_validate({"url": lab.url}), spec, Path())
    return MysqlSource(MysqlConnection.model_validate({"url": lab.url}), spec, Path())


@pytest.fixture
def mixed(server_lab: Lab) -> Any:
    for statement in CREATE[server_lab.kind]:
        server_lab.execute(statement)
    source = source_of(server_lab, "mixed")
    yield source
    source.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_each_row_lies_in_exactly_one_partition(mixed: Any, data: st.DataObject) -> None:
    """Whatever the cuts: columns with ties, NULLs, zones, cases that count as equal, keys."""
    names = data.draw(st.lists(st.sampled_from(["n", "word", "at", "day", "id"]), min_size=1, max_size=3, unique=True))
    table = mixed.describe()
    cursor = Cursor(tuple(c for n in names if (c := table.column(n)) is not None), "Europe/Berlin")
    sql = mixed._cursor_sql(cursor)
    fetched = mixed._rows(sql.sample(sql.bounds(None, None), 1))
    places = data.draw(st.lists(st.integers(0, len(fetched) - 1), max_size=6))
    cuts = [Position.before(*scalars(mixed, fetched[i], cursor)) for i in sorted(places)]
    split = split_by(sql, cuts)
    if not cuts:
        assert split.predicates == ()
        return
    held = " + ".join(f"CASE WHEN {predicate} THEN 1 ELSE 0 END" for predicate in split.predicates)
    inner = f"SELECT {sql.columns}, {', '.join(split.columns)} FROM {sql.relation}"
    found = mixed._rows(f"SELECT {held}, {sql.columns} FROM ({inner}) q")
    assert len(found) == 300
    for count, *values in found:
        assert count == (0 if None in values else 1), values


def scalars(source: Any, row: tuple[Any, ...], cursor: Cursor) -> tuple[Any, ...]:
    from floodmark.sources.postgres.source import _scalars

    return source._scalars(row, cursor) if isinstance(source, MysqlSource) else _scalars(row, cursor)


def shares(rows: DataFrame, key: str = "id") -> list[int]:
    """Rows per reader; each row once."""
    found = rows.selectExpr("spark_partition_id() AS reader", key).collect()
    assert len({row[1] for row in found}) == len(found)
    return list(Counter(row[0] for row in found).values())


def test_a_whole_table_is_read_in_parallel_by_its_primary_key(pg_lab: Lab) -> None:
    """Skewed: half of the ids lie far above the others. Judged by a sample of pages."""
    assert pg_lab.spark is not None
    pg_lab.execute(
        "INSERT INTO orders SELECT CASE WHEN i > 30000 THEN i::bigint * 1000000 ELSE i END, 'v', now() "
        "FROM generate_series(1, 60000) i"
    )
    pg_lab.execute("ANALYZE orders")
    source = source_of(pg_lab, "orders", partitions=4)
    with source.snapshot() as snapshot:
        found = shares(source.read(pg_lab.spark, ReadRequest(None, None, None, None), snapshot))
    assert len(found) == 4
    assert max(found) < 2 * 60_000 / 4
    assert sum(found) == 60_000


@pytest.mark.parametrize("rows", [3, 1000])
def test_a_slice_is_read_by_as_many_readers_as_the_file_says(server_lab: Lab, rows: int) -> None:
    assert server_lab.spark is not None
    server_lab.series(rows, "2026-01-01 10:00:00", "1 second")
    source = source_of(server_lab, "orders", partitions=4)
    cursor = Cursor((source.describe().column("updated_at"),))
    with source.snapshot() as snapshot:
        found = shares(source.read(server_lab.spark, ReadRequest(cursor, None, None, rows), snapshot))
    assert found == [3] if rows == 3 else len(found) == 4 and max(found) - min(found) <= 2


def test_a_row_that_moves_between_two_readers_is_read_once(my_lab: Lab) -> None:
    """MySQL's readers each see a moment of their own. Between them rows get other cursor values within the window."""
    my_lab.series(400, "2026-01-01 10:00:00", "1 second")
    source = source_of(my_lab, "orders", partitions=4)
    table = source.describe()
    cursor = Cursor((table.column("updated_at"),))
    where = source._cursor_sql(cursor).bounds(None, None)
    split = source._split(table, ReadRequest(cursor, None, None, 400), where)
    assert len(split.predicates) == 4
    seen: list[int] = []
    for turn, predicate in enumerate(split.predicates):
        inner = f"SELECT id, {', '.join(split.columns)} FROM orders q WHERE {where}"
        seen += [row[0] for row in source._rows(f"SELECT id FROM ({inner}) q WHERE {predicate}")]
        sign = "+" if turn % 2 else "-"
        my_lab.execute(f"UPDATE orders SET updated_at = updated_at {sign} INTERVAL 250 SECOND WHERE id % 2 = 0")
    assert sorted(seen) == list(range(1, 401))


def test_without_a_key_that_can_be_ordered_there_is_one_reader(my_lab: Lab) -> None:
    my_lab.drop_key()
    my_lab.series(100, "2026-01-01 10:00:00", "1 second")
    source = source_of(my_lab, "orders", partitions=4)
    table = source.describe()
    assert key_of(table) is None
    cursor = Cursor((table.column("updated_at"),))
    assert source._split(table, ReadRequest(cursor, None, None, 100), "true").predicates == ()
