"""Which names a table can have."""

from __future__ import annotations

import re
from collections.abc import Sequence

from floodmark.errors import ConfigError, Place

LONGEST = 255
"""Bytes of a folder's name on most file systems."""


def refuse_table(parts: Sequence[str], table: str, declared_at: Place | None) -> None:
    """Each part is a folder of the warehouse, and Spark and all other readers must mean the same one."""
    for part in parts:
        misread = re.search(r"[/\\?#:%\x00-\x1f\x7f]|^\.", part)
        trouble = f"has {misread[0]!r} in it" if misread else ""
        if len(part.encode()) > LONGEST:
            trouble = f"is longer than {LONGEST} bytes"
        if trouble:
            raise ConfigError(
                f"{part} {trouble}, so it can't be the name of an Iceberg table or namespace",
                table=table,
                declared_at=declared_at,
                hint="choose another `target.table`; blanks, quotes and all letters will do",
            )
