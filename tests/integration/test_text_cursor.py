"""Text is ordered by the database: where its collation finds two texts equal, they are never cut apart."""

from __future__ import annotations

from tests.lab import Lab, ok


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
