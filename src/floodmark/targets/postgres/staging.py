"""A task's rows into Postgres, by `COPY`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from floodmark.targets.database.staging import OURS, attempt_here, report

if TYPE_CHECKING:
    import psycopg
    import pyarrow

ATTEMPT = "_floodmark_attempt"


@dataclass(frozen=True)
class Copy:
    """Runs where Spark's tasks do."""

    keywords: dict[str, Any] = field(repr=False)
    statement: str

    def __call__(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterable[pyarrow.RecordBatch]:
        import psycopg
        import pyarrow
        from pyarrow import csv

        attempt = attempt_here()
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
        yield report(attempt, rows)


def _told(error: psycopg.Error) -> str:
    """With the column and the value, which Postgres tells apart from its message."""
    where = re.search(r"column (.+): ", error.diag.context or "")
    value = (error.diag.context or "").partition(": ")[2]
    said = (error.diag.message_primary or str(error)).splitlines()[0]
    return f"{said} (column {where[1]}, value {value})" if where else said
