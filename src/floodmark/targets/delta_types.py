"""Which folders and columns a Delta table can have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from floodmark.errors import ConfigError, Place
from floodmark.targets.lake_types import refuse_names, refuse_types

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

NO_PLACE = {"void", "interval", "daytimeinterval", "yearmonthinterval", "time"}
"""Spark types that Delta has none for, by `typeName`."""

RESERVED = "_metadata"
"""Spark's own column of every file: a MERGE into a table that has another by this name fails."""


LONGEST = 255
"""Bytes of a folder's name on most file systems."""


def refuse_folder(path: str, table: str, declared_at: Place | None) -> None:
    """Spark and the `deltalake` package must mean the same folder: in these, the second one looks elsewhere."""
    misread = re.search(r"[\\?#\x00-\x1f\x7f]|%[0-9A-Fa-f]{2}", path)
    trouble = f"has {misread[0]!r} in it" if misread else ""
    if any(len(part.encode()) > LONGEST for part in path.split("/")):
        trouble = f"is longer than {LONGEST} bytes"
    if trouble:
        raise ConfigError(
            f"{path} {trouble}, so it can't be the folder of a Delta table",
            table=table,
            declared_at=declared_at,
            hint="choose another `target.table` or connection path; blanks, dots, quotes and all letters will do",
        )


def refuse_columns(schema: StructType, table: str) -> None:
    """Before anything is read or created, and by name: Delta's own words come late, or not at all."""
    refuse_names(schema, table, "Delta", (RESERVED,))
    refuse_types(schema, table, "Delta", NO_PLACE)
