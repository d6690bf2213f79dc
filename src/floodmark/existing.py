"""The table that is there, against what the file says of it: before anything is read. Pure."""

from __future__ import annotations

from floodmark.errors import TargetError
from floodmark.model.outcome import TargetState
from floodmark.model.spec import FullSpec, PipelineSpec
from floodmark.shape.rules import landing_name


def check_table(spec: PipelineSpec, target: TargetState) -> None:
    """Not for a load that replaces everything: it makes the table anew. A column that a load finds rows by is no new
    one: those that are there would have NULL in it, and be there twice."""
    if not target.columns:
        return
    have = {name.casefold() for name in target.columns}
    have |= {new.casefold() for old, new in spec.target.renames.items() if old.casefold() in have}
    for name, path, role in _needed(spec):
        if name.casefold() not in have:
            raise _refusal(
                spec, path, f'the table {spec.target.table} has no column "{name}", {role}', name, target.columns
            )
    _check_partitions(spec, target)


def _needed(spec: PipelineSpec) -> list[tuple[str, str, str]]:
    """Name, option and what it is for."""
    wanted: list[tuple[str, str, str]] = []
    if spec.target.matches_keys or spec.includes_nulls:
        wanted += [(name, "target.keys", "a key that rows are found by") for name in spec.target.keys]
    if spec.target.mode == "history":
        wanted += [(n, "target.history", "which a history is kept in") for n in spec.target.history.names]
    if spec.target.mode == "replace_range" and not isinstance(spec.change, FullSpec):
        cursor = (landing_name(spec, name) or name for name in spec.change.cursor_columns)
        wanted += [(name, "change", "which says what lies in the range") for name in cursor]
    return wanted


def _check_partitions(spec: PipelineSpec, target: TargetState) -> None:
    declared, parts = spec.target.partition_by, target.partitions
    if spec.target.mode != "replace_partitions" or parts is None or set(parts) == set(declared):
        return
    layout = f"partitioned by {', '.join(parts)}" if parts else "not partitioned"
    trouble = f"is {layout}, and mode replace_partitions is declared by {', '.join(declared)}"
    raise _refusal(spec, "target.partition_by", f"the table {spec.target.table} {trouble}")


def _refusal(
    spec: PipelineSpec, path: str, trouble: str, column: str | None = None, columns: tuple[str, ...] = ()
) -> TargetError:
    known = f"columns of {spec.target.table}: {', '.join(columns)}\n" if columns else ""
    return TargetError(
        trouble,
        table=spec.target.table,
        column=column,
        declared_at=spec.at(path),
        hint=f"{known}choose one:\n"
        "  declare what the table has\n"
        "  target: {table: …}     load into another table\n"
        f"  floodmark run {spec.name} --full-refresh     replace its rows and columns by the source's",
    )
