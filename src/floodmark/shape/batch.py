"""A batch on its way from read to load: column rules, transform, check, one row per key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from floodmark.model.spec import PipelineSpec
from floodmark.model.table import Cursor, TableInfo
from floodmark.shape.dedupe import newest_by_key, refuse_null_keys, require_columns
from floodmark.shape.rules import apply_rules, landing_cursor, landing_table
from floodmark.shape.transform import transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def shape(batch: DataFrame, spec: PipelineSpec, table: TableInfo, cursor: Cursor | None, root: Path) -> DataFrame:
    """`table` and `cursor` are the source's own; the batch that leaves here has the target's names."""
    batch = transform(apply_rules(batch, spec, table), spec, root)
    cursor = landing_cursor(spec, cursor)
    by_keys = spec.target.matches_keys or spec.includes_nulls
    order = cursor.names if cursor is not None and (by_keys or spec.target.mode == "replace_range") else ()
    fallback = cursor.fallback.name if cursor is not None and cursor.fallback is not None and order else None
    require_columns(batch, spec, order if fallback is None else (*order, fallback))
    if not by_keys:
        return batch
    keys = spec.target.keys
    if spec.transform is None and _is_unique(landing_table(spec, table), keys):
        return batch
    batch = refuse_null_keys(batch, keys, order, table.name)
    if spec.target.mode == "history":
        return _one_per_moment(batch, keys, order, fallback)
    return newest_by_key(batch, keys, order, fallback)


def _one_per_moment(batch: DataFrame, keys: tuple[str, ...], order: tuple[str, ...], fallback: str | None) -> DataFrame:
    """Each change of a key is a version of its own."""
    moments = order if fallback is None else (*order, fallback)
    return newest_by_key(batch, (*keys, *moments), order, fallback)


def _is_unique(table: TableInfo, keys: tuple[str, ...]) -> bool:
    """The database itself says: unique and not NULL, in the one snapshot that was read."""
    primary = [c for c in table.columns if c.name in table.primary_key]
    return bool(primary) and not any(c.nullable for c in primary) and set(table.primary_key) <= set(keys)
