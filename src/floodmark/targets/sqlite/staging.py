"""From Spark to the driver through Parquet files beside the database, a bounded number of rows at a time: SQLite has
one writer, so this is the one place where rows pass through the driver."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AT_ONCE = 10_000
"""Rows that the driver holds."""


@contextmanager
def parquet(batch: DataFrame, beside: Path) -> Iterator[Path]:
    """The batch's files, in a folder that is gone afterwards. What a dead run left goes first: whoever is here
    holds the lease."""
    prefix = f".{beside.name}.floodmark-"
    for leftover in beside.parent.glob(f"{prefix}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    folder = beside.parent / f"{prefix}{token_hex(4)}"
    try:
        batch.write.parquet(folder.absolute().as_uri())
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def rows_of(folder: Path) -> Iterator[list[tuple[Any, ...]]]:
    from pyarrow import parquet as pq

    for path in sorted(folder.glob("*.parquet")):
        for part in pq.ParquetFile(path).iter_batches(AT_ONCE):
            yield list(zip(*(column.to_pylist() for column in part.columns), strict=True))
