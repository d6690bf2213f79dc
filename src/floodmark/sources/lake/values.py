"""Columns and their values, as Spark's SQL writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from floodmark.model.position import Scalar
from floodmark.model.table import Column, Cursor
from floodmark.sources.sql import local_time, utc_time

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def scalar(value: Any, column: Column, cursor: Cursor) -> Scalar:
    if column.zoned:
        return _EPOCH + timedelta(microseconds=value)
    if isinstance(value, datetime):
        return utc_time(value, cursor)
    return int(value) if isinstance(value, int | Decimal) else str(value)


def literal(value: Scalar, column: Column, cursor: Cursor) -> str:
    if isinstance(value, datetime):
        wall = value.astimezone(UTC).replace(tzinfo=None) if column.zoned else local_time(value, cursor)
        text = wall.isoformat(sep=" ", timespec="microseconds")
        return f"TIMESTAMP '{text}Z'" if column.zoned else f"TIMESTAMP_NTZ '{text}'"
    if isinstance(value, int):
        return str(value)
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


WORDS = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
"""As Spark's SQL has them."""


def column_of(name: str, kind: str, *, nullable: bool) -> Column:
    """`kind` is the name of a type as Spark's own schemas have it."""
    if kind in ("timestamp", "timestamp_ntz"):
        return Column(name, kind, "timestamp", nullable, zoned=kind == "timestamp")
    if kind in WORDS or (kind.startswith("decimal(") and kind.replace(" ", "").endswith(",0)")):
        return Column(name, WORDS.get(kind, kind), "integer", nullable)
    if kind == "string":
        return Column(name, kind, "text", nullable)
    return Column(name, kind, "date" if kind == "date" else "other", nullable)
