"""From Spark to the driver through Parquet files beside a database that is a file: it has one writer, so this is the
one place where rows pass through the driver."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from floodmark.errors import TargetError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AT_ONCE = 10_000
"""Rows that the driver holds."""


@contextmanager
def parquet(batch: DataFrame, beside: Path, table: str) -> Iterator[Path]:
    """The batch's files, in a folder that is gone afterwards. What a dead run left goes first: whoever is here
    holds the lease on the table."""
    prefix = f".{beside.name}.floodmark-{sha256(table.encode()).hexdigest()[:8]}-"
    for leftover in beside.parent.iterdir():
        if leftover.name.startswith(prefix):
            shutil.rmtree(leftover, ignore_errors=True)
    folder = beside.parent / f"{prefix}{token_hex(4)}"
    try:
        _write(batch, folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(batch: DataFrame, folder: Path) -> None:
    """Raises TargetError where the rows are not all there: workers elsewhere write to a disk of their own."""
    from pyarrow import parquet as pq
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    # Not as a URI: Spark takes %20 for three characters of the folder's name.
    batch.observe(seen, F.count(F.lit(1)).alias("rows")).write.parquet(f"file://{folder.absolute()}")
    written = seen.get.get("rows")  # over Spark Connect nothing is told
    found = [pq.read_metadata(path).num_rows for path in folder.glob("*.parquet")]
    if not found or written not in (None, sum(found)):
        raise TargetError(
            f"Spark has written {'rows' if written is None else f'{written:,} rows'} to {folder.parent}, and "
            f"{sum(found):,} of them are there",
            hint="the file must be on a disk that Spark's workers write to as well",
        )


def rows_of(folder: Path) -> Iterator[list[tuple[Any, ...]]]:
    from pyarrow import parquet as pq

    for path in sorted(folder.glob("*.parquet")):
        for part in pq.ParquetFile(path).iter_batches(AT_ONCE):
            yield list(zip(*(column.to_pylist() for column in part.columns), strict=True))
