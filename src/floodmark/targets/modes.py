"""Which modes and layouts a target has: one that it lacks is refused before anything is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from floodmark.errors import ConfigError, TargetError
from floodmark.model.spec import PipelineSpec
from floodmark.model.target import Mode


def refuse_mode(spec: PipelineSpec, target: str, lacks: Mapping[Mode, str]) -> None:
    """`lacks` says why, and what to use instead."""
    why = lacks.get(spec.target.mode)
    if why is not None:
        raise ConfigError(
            f"{target} has no mode {spec.target.mode}: {why}",
            table=spec.target.table,
            declared_at=spec.at("target.mode"),
        )


def refuse_layout(spec: PipelineSpec, target: str, *options: Literal["partition_by", "cluster_by"]) -> None:
    """What a user has asked for and would not get."""
    for option in options:
        if getattr(spec.target, option):
            raise ConfigError(
                f"{target} has no `{option}`: the table would not be laid out by it",
                table=spec.target.table,
                declared_at=spec.at(f"target.{option}"),
                hint="leave it out",
            )


def other_partitions(spec: PipelineSpec, have: Iterable[str]) -> TargetError:
    """The table's own partitions are replaced, which may be the whole table."""
    parts = ", ".join(have)
    layout = f"partitioned by {parts}" if parts else "not partitioned"
    return TargetError(
        f"the table is {layout}, and mode replace_partitions is declared by {', '.join(spec.target.partition_by)}",
        table=spec.target.table,
        declared_at=spec.at("target.partition_by"),
        hint=f"declare the table's own, or `floodmark run {spec.name} --full-refresh` makes it anew",
    )
