"""Rows on their way into a staging table, each task of Spark's over a connection of its own, by `COPY`.

A task that is tried again after its own commit leaves its rows behind twice. So rows carry the attempt that brought
them, and each attempt that Spark counts says how many there were: only those are promoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg
    import pyarrow
    from pyspark.sql import DataFrame

ATTEMPT = "_floodmark_attempt"
OURS = "floodmark: "
"""What a user is to be told begins with it, wherever in Spark's trace it stands."""
REPORT = "attempt bigint, rows bigint"


@dataclass(frozen=True)
class Told:
    """By the attempts that count."""

    attempts: tuple[int, ...]
    rows: int


@dataclass(frozen=True)
class Copy:
    """Runs where Spark's tasks do."""

    keywords: dict[str, Any] = field(repr=False)
    statement: str

    def __call__(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterable[pyarrow.RecordBatch]:
        import psycopg
        import pyarrow
        from pyarrow import csv
        from pyspark import TaskContext

        task = TaskContext.get()
        attempt = 0 if task is None else int(task.taskAttemptId())
        unnamed = csv.WriteOptions(include_header=False)
        rows = 0
        try:
            with psycopg.connect(**self.keywords) as db, db.cursor() as cursor:
                cursor.execute("SET datestyle = 'ISO'; SET timezone = 'UTC'")
                with cursor.copy(self.statement.encode()) as copy:
                    for batch in batches:
                        mark = pyarrow.array([attempt] * batch.num_rows, pyarrow.int64())
                        sink = pyarrow.BufferOutputStream()
                        csv.write_csv(batch.append_column(ATTEMPT, mark), sink, unnamed)
                        copy.write(sink.getvalue().to_pybytes())
                        rows += batch.num_rows
        except psycopg.Error as error:
            raise RuntimeError(OURS + _told(error)) from None
        yield pyarrow.RecordBatch.from_pydict({"attempt": [attempt], "rows": [rows]})


def stage(batch: DataFrame, copy: Copy) -> Told:
    """A batch of texts. One row for each task comes back."""
    told = batch.mapInArrow(copy, REPORT).collect()
    return Told(tuple(row.attempt for row in told), sum(row.rows for row in told))


def _told(error: psycopg.Error) -> str:
    """With the column and the value, which Postgres tells apart from its message."""
    where = re.search(r"column (.+): ", error.diag.context or "")
    value = (error.diag.context or "").partition(": ")[2]
    said = (error.diag.message_primary or str(error)).splitlines()[0]
    return f"{said} (column {where[1]}, value {value})" if where else said
