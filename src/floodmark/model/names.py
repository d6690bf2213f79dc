"""How Spark writes the name of a column or table; databases have their own ways, beside each source."""

from __future__ import annotations


def spark_name(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
