"""For readers of the plain files: which of them are the table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floodmark.errors import TargetError
from floodmark.targets.parquet.manifests import Manifests
from floodmark.targets.parquet.places import BucketPlace, LocalPlace, Place


@dataclass(frozen=True)
class ParquetTable:
    """A table as one commit has left it. Its files stay for a while after later commits replaced them."""

    version: int
    files: list[str]
    schema: dict[str, Any]
    """As `StructType.fromJson` takes it: files that are older than a column lack it, or have it in a smaller type."""
    partition_by: tuple[str, ...]


def parquet_table(path: str | Path) -> ParquetTable:
    """The newest version of the table in this folder, or at this address of an object store. Needs no Spark."""
    place = place_of(str(path))
    found = Manifests(place).snapshot()
    if found is None:
        raise TargetError(f"there is no table at {path}", hint="name the table's own folder, not the connection's")
    base = place.address if "://" in str(path) else str(Path(path).resolve())
    files = [f"{base}/data/{name}" for name in found.files]
    return ParquetTable(found.newest.version, files, found.newest.columns, found.newest.partition_by)


def place_of(path: str) -> Place:
    return BucketPlace(path.rstrip("/")) if "://" in path else LocalPlace(Path(path).resolve())
