"""A task's rows into MySQL, as texts: by `LOAD DATA LOCAL`, where the server takes it, and in multi-row inserts
elsewhere. `LOCAL` turns every error into a warning, so nothing is converted here."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from floodmark.targets.database.staging import OURS, attempt_here, report
from floodmark.targets.mysql.types import MARK

if TYPE_CHECKING:
    import pyarrow

ATTEMPT = "floodmark_attempt"
REFUSED = (1148, 2068, 3948, 4166)
"""LOAD DATA LOCAL is not allowed, here or there."""


@dataclass(frozen=True)
class Put:
    """Runs where Spark's tasks do."""

    keywords: dict[str, Any] = field(repr=False)
    session: str
    table: str
    columns: int

    def __call__(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterable[pyarrow.RecordBatch]:
        import pymysql

        attempt = attempt_here()
        rows = 0
        try:
            db = pymysql.connect(**self.keywords, init_command=self.session, local_infile=True)
            with db, db.cursor() as cursor:
                for batch in batches:
                    self._put(cursor, batch, attempt)
                    rows += batch.num_rows
        except pymysql.Error as error:
            raise RuntimeError(OURS + str(error.args[-1] if error.args else error)) from None
        yield report(attempt, rows)

    def _put(self, cursor: Any, batch: pyarrow.RecordBatch, attempt: int) -> None:
        import pymysql
        from pyarrow import csv

        with tempfile.NamedTemporaryFile(suffix=".csv") as file:
            csv.write_csv(batch, file.name, csv.WriteOptions(include_header=False))
            try:
                cursor.execute(self._load(file.name, attempt))
            except pymysql.Error as error:
                if not error.args or error.args[0] not in REFUSED:
                    raise
                self._insert(cursor, batch, attempt)

    def _load(self, path: str, attempt: int) -> str:
        read = ", ".join(f"@c{i}" for i in range(self.columns))
        kept = ", ".join(f"c{i} = IF(@c{i} = '', NULL, substr(@c{i}, {len(MARK) + 1}))" for i in range(self.columns))
        return (
            f"LOAD DATA LOCAL INFILE '{os.fspath(path)}' INTO TABLE {self.table} CHARACTER SET utf8mb4 "
            "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '' LINES TERMINATED BY '\n' "
            f"({read}) SET {kept}, {ATTEMPT} = {attempt}"
        )

    def _insert(self, cursor: Any, batch: pyarrow.RecordBatch, attempt: int) -> None:
        values = ", ".join(["substr(%s, 2)"] * self.columns)
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        cursor.executemany(f"INSERT INTO {self.table} VALUES ({values}, {attempt})", list(rows))
