"""Text is ordered by the database: where its collation finds two texts equal, they are never cut apart."""

from __future__ import annotations

import psycopg
import pytest
from tests.lab import Lab, ok

from floodmark.errors import ConfigError

COLLATIONS = {
    "order of a language": 'COLLATE "de-x-icu"',
    "case counts as equal": "COLLATE caseless",
}
CASELESS = "CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"


def test_letters_of_either_case_are_one_value_where_the_collation_says_so(my_lab: Lab) -> None:
    my_lab.execute("DROP TABLE orders")
    my_lab.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, val varchar(20) COLLATE utf8mb4_general_ci NOT NULL, "
        "updated_at datetime(6) NOT NULL)"
    )
    words = ["a", "A", "a ", "B", "b", "ä", "it's", "C\\", "c\\", "ß", "%s", "z🦆"]
    my_lab.insert(*((i, word, "2026-01-01 10:00:00") for i, word in enumerate(words * 3)))
    project = my_lab.project(
        change="{by: sequence, column: val, delay: 0s}",
        target="{connection: lake, table: orders, mode: append}",
        batch_rows=4,
    )
    result = ok(project.run("orders"))
    assert result.rows.inserted == 36
    assert result.slices > 3
    my_lab.assert_equal()
    assert ok(project.run("orders")).nothing_new


@pytest.mark.parametrize("collation", COLLATIONS.values(), ids=COLLATIONS)
def test_text_under_an_icu_collation_is_cut_and_followed_in_its_order(pg_lab: Lab, collation: str) -> None:
    """`a` < `B` < `c` here, and `B` < `a` by bytes: whoever compared them outside of the database would lose `C`."""
    pg_lab.execute("DROP TABLE orders")
    pg_lab.execute(CASELESS)
    pg_lab.execute(f"CREATE TABLE orders (id int PRIMARY KEY, val text {collation} NOT NULL, updated_at timestamptz)")
    words = ["a", "A", "ä", "B", "b", "-b", "it's", "%s", "ß", "🦆"]
    pg_lab.insert(*((i, word, "2026-01-01 10:00:00") for i, word in enumerate(words * 3)))
    project = pg_lab.project(
        change="{by: sequence, column: val, fence: off, delay: 0s}",
        target="{connection: lake, table: orders, mode: append}",
        batch_rows=4,
    )
    result = ok(project.run("orders"))
    assert result.rows.inserted == 30
    assert result.slices > 3
    assert ok(project.run("orders")).nothing_new
    pg_lab.insert(*((100 + i, f"ß{word}", "2026-01-02 10:00:00") for i, word in enumerate(words)))
    assert ok(project.run("orders")).rows.inserted == 10
    pg_lab.assert_equal()


def test_text_in_order_of_its_language_is_followed_by_the_look(pg_lab: Lab) -> None:
    """A writer that is still at work holds the mark below its own text, whatever its bytes are."""
    pg_lab.execute("DROP TABLE orders")
    pg_lab.execute('CREATE TABLE orders (id int PRIMARY KEY, val text COLLATE "de-x-icu" NOT NULL, updated_at date)')
    pg_lab.insert((1, "a", "2026-01-01"))
    project = pg_lab.project(
        change="{by: sequence, column: val, fence: transactions, delay: 0s, wait: 0s}",
        target="{connection: lake, table: orders, mode: append}",
    )
    assert ok(project.run("orders")).rows.inserted == 1
    with psycopg.connect(pg_lab.url, autocommit=True) as late:
        late.execute("BEGIN")
        late.execute("INSERT INTO orders VALUES (2, 'B', '2026-01-01')")
        pg_lab.insert((3, "c", "2026-01-01"))
        assert ok(project.run("orders")).rows_waiting == 1
        late.execute("COMMIT")
    for _ in range(2):
        ok(project.run("orders"))
    pg_lab.assert_equal()


def test_a_range_of_text_could_not_be_found_in_the_target(sqlite_lab: Lab) -> None:
    sqlite_lab.fill(2)
    target = "{connection: lake, table: orders, mode: replace_range}"
    project = sqlite_lab.project(change="{by: sequence, column: val}", target=target)
    with pytest.raises(ConfigError, match='"val" of orders is text, whose order only the source knows') as refused:
        project.plan("orders")
    assert refused.value.declared_at is not None
    assert "replace_range" in refused.value.declared_at.text
