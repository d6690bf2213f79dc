"""A query or a view as the source, on each database: looked at, cut, followed and refused like a table."""

from __future__ import annotations

import pytest
from tests.lab import Lab, ok

from floodmark.errors import ConfigError, Refused

QUERY = """\
SELECT o.id, o.val, o.updated_at   -- what the shop has sold; 100% of it
FROM orders o JOIN kinds k ON k.id = o.id % 2 WHERE k.name = 'odd';
-- the end
"""


@pytest.fixture
def shop(lab: Lab) -> Lab:
    lab.execute("CREATE TABLE kinds (id int PRIMARY KEY, name varchar(10))")
    lab.execute("INSERT INTO kinds VALUES (?, ?)", [(0, "even"), (1, "odd")])
    lab.fill(10)
    lab.fill(10, "2026-01-02 10:00:00", start=11)
    return lab


def query(text: str) -> str:
    return "\n      connection: shop\n      query: |\n" + "\n".join(f"        {line}" for line in text.splitlines())


def ids(lab: Lab) -> list[int]:
    return [row[0] for row in lab.target_rows()]


def test_a_query_is_followed_in_slices_and_recognised_when_quiet(shop: Lab) -> None:
    project = shop.project(source=query(QUERY), batch_rows=4)
    assert project.plan("orders").rows == 10
    result = ok(project.run("orders"))
    assert (result.rows.inserted, result.slices) == (10, 2)
    assert ids(shop) == list(range(1, 20, 2))
    assert ok(project.run("orders")).nothing_new
    shop.execute("UPDATE orders SET val = 'new', updated_at = '2026-01-03 10:00:00' WHERE id IN (1, 2)")
    assert ok(project.run("orders")).rows.updated == 1


def test_another_query_is_refused_and_another_layout_is_not(shop: Lab) -> None:
    ok(shop.project(source=query("select * from orders where val <> 'a  b'")).run("orders"))
    same = shop.project(source=query("select *\n  from orders\n where val <> 'a  b';"))
    assert ok(same.run("orders")).nothing_new
    for other in ("select * from orders where val <> 'a b'", "select * from orders"):
        result = shop.project(source=query(other)).run("orders")
        assert isinstance(result.failure, Refused)
        assert "`source.query` was query" in result.errors[0]
        assert result.failure.declared_at is not None


def test_a_view_is_read_like_a_table(shop: Lab) -> None:
    shop.execute("CREATE VIEW late AS SELECT * FROM orders WHERE id > 15")
    project = shop.project(source="{connection: shop, table: late}")
    assert ok(project.run("orders")).rows.inserted == 5
    assert ok(project.run("orders")).nothing_new


def test_two_columns_of_one_name_are_refused(shop: Lab) -> None:
    project = shop.project(source=query("select o.*, k.id from orders o join kinds k on k.id = o.id"))
    with pytest.raises(ConfigError) as caught:
        project.plan("orders")
    assert caught.value.declared_at is not None


def test_a_query_read_whole_and_a_cursor_that_it_does_not_have(shop: Lab) -> None:
    bare = shop.project(source=query("select id, val from orders"))
    with pytest.raises(ConfigError, match='column "updated_at" is not in the query'):
        bare.plan("orders")
    project = shop.project(
        source=query(QUERY), change="{by: none}", target="{connection: lake, table: orders, mode: replace}"
    )
    assert ok(project.run("orders")).rows.inserted == 10
