"""Rows without a cursor value lie in no window: when they are counted, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from floodmark.errors import SourceError
from floodmark.model.ledger import NullsSeen, PipelineState
from floodmark.model.plan import RunPlan
from floodmark.model.spec import CursorOptions, FullSpec, PipelineSpec
from floodmark.model.table import Cursor, TableInfo
from floodmark.ports import Source

CHOICES = (
    "choose one, in `change:`\n"
    "  nulls: include                  load them with the others, found by their keys\n"
    "  nulls: {coalesce: created_at}   take another column's value for them\n"
    "  nulls: skip                     leave them out, counted\n"
    "or fill the column in the source"
)


def with_nulls(
    spec: PipelineSpec,
    source: Source,
    state: PipelineState,
    plan: RunPlan,
    table: TableInfo,
    cursor: Cursor,
    tell: Callable[[str], None],
) -> RunPlan:
    """The plan, with the rows that lie in no window. Raises where the policy is to fail and there are some."""
    change = spec.change
    if isinstance(change, FullSpec) or not cursor.nullable or not _is_due(change, state, plan, cursor):
        return replace(plan, nulls=state.nulls)
    include = change.nulls == "include"
    count, checksum = source.nulls(cursor, checksum=include)
    names = ", ".join(column.name for column in cursor.nullable)
    rows = f"{count:,} rows of {table.name} have" if count > 1 else f"1 row of {table.name} has"
    if count and change.nulls == "skip":
        tell(f"{rows} no {names}: left out")
    elif count and not include:
        raise SourceError(
            f"{rows} no {names}, so no window can ever hold {'them' if count > 1 else 'it'}",
            table=table.name,
            column=names,
            declared_at=spec.at("change.column") or spec.at("change"),
            hint=CHOICES,
        )
    known = state.nulls
    changed = known is None or plan.full or (known.count, known.checksum) != (count, checksum)
    seen = NullsSeen(count=count, checksum=checksum, at=plan.clock) if plan.clock is not None else known
    return replace(plan, nulls=seen, load_nulls=include and count > 0 and changed)


def _is_due(change: CursorOptions, state: PipelineState, plan: RunPlan, cursor: Cursor) -> bool:
    """With each load; on a quiet run only where an index finds them, or when it has been a while: else every run would
    go through the whole table."""
    known = state.nulls
    if known is None or plan.clock is None or not plan.nothing_new or plan.first:
        return True
    return all(column.indexed for column in cursor.nullable) or plan.clock - known.at >= change.nulls_every
