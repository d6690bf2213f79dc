"""For tests of the look: a table that the database fills, writers that commit late, runs until all is in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from tests.lab import Lab, ok
from tests.services import wait_for

from floodmark.model.outcome import RunResult
from floodmark.project import Project

BY_TIME = "{by: timestamp, column: updated_at, wait: 100ms}"
BY_ID = "{by: sequence, column: id, wait: 100ms}"

TABLES = {
    "postgres": "CREATE TABLE orders (id bigserial PRIMARY KEY, val text, "
    "updated_at timestamptz NOT NULL DEFAULT now())",
    "mariadb": "CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY, val text, "
    "updated_at timestamp(6) NOT NULL DEFAULT current_timestamp(6))",
    "sqlite": "CREATE TABLE orders (id INTEGER PRIMARY KEY, val TEXT, "
    "updated_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP)",
}

NEW = "INSERT INTO orders (val) VALUES ('{}')"


def filled_by_database(lab: Lab, create: str | None = None) -> Lab:
    lab.execute("DROP TABLE orders")
    lab.execute(create or TABLES[lab.kind])
    return lab


def add(lab: Lab, *values: str) -> None:
    """Each row committed by itself."""
    for value in values:
        lab.execute(NEW.format(value))


def until_all_is_in(project: Project, lab: Lab) -> RunResult:
    """Runs until nothing waits any more: rows are proven only when they are a moment old."""
    last: list[RunResult] = []

    def nothing_waits() -> bool:
        result: RunResult = ok(project.run("orders"))
        last.append(result)
        return result.rows_waiting == 0 and result.nothing_new

    wait_for(nothing_waits, "all rows loaded", seconds=60)
    lab.assert_equal()
    return last[-1]


def shows(lab: Lab, value: str) -> bool:
    return any(row[1] == value for row in lab.target_rows())


@contextmanager
def session(lab: Lab) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(lab.url, autocommit=True) as connection:
        yield connection


@contextmanager
def meanwhile(work: Callable[[], object]) -> Iterator[threading.Thread]:
    """In a thread of its own; what went wrong there is raised at the end."""
    trouble: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            trouble.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    try:
        yield thread
    finally:
        thread.join(60)
    if trouble:
        raise trouble[0]
