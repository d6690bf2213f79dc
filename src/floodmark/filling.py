"""Columns that are new in the source, and the rows that were loaded before they were there."""

from __future__ import annotations

from floodmark.model.outcome import TargetState
from floodmark.model.spec import FullSpec, PipelineSpec
from floodmark.model.table import TableInfo
from floodmark.shape.rules import landing_table


def new_columns(spec: PipelineSpec, table: TableInfo, target: TargetState) -> tuple[str, ...]:
    """Those to fill. A pipeline that reads everything each time fills them anyway."""
    wanted = spec.target.new_columns == "backfill" and not isinstance(spec.change, FullSpec)
    if not wanted or not target.has_rows or not target.columns:
        return ()
    have = {name.casefold() for name in target.columns}
    have |= {new.casefold() for old, new in spec.target.renames.items() if old.casefold() in have}
    return tuple(c.name for c in landing_table(spec, table).columns if c.name.casefold() not in have)
