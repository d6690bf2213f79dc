"""How Spark writes the name of a column or table, and which names it takes for the same; databases have their own ways,
beside each source."""

from __future__ import annotations

from collections.abc import Iterable


def spark_name(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


BATCH, LOADED_AT, OP = PROVENANCE = ("_floodmark_batch", "_floodmark_loaded_at", "_floodmark_op")
"""Columns that say where a row came from. They are no part of the row: never compared, never verified."""

DELETED = "_floodmark_deleted"
"""A batch may have it: where it is true, the key's row is to go. It is never a column of the table."""


def twins(names: Iterable[str]) -> tuple[str, str] | None:
    """The first two names that differ only by case: to Spark they are one."""
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(name.lower(), name)
        if first != name:
            return first, name
    return None
