"""How Spark writes the name of a column or table; databases have their own ways, beside each source."""

from __future__ import annotations


def spark_name(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


BATCH, LOADED_AT, OP = PROVENANCE = ("_floodmark_batch", "_floodmark_loaded_at", "_floodmark_op")
"""Columns that say where a row came from. They are no part of the row: never compared, never verified."""
