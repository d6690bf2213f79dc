"""Which modes a target has: one that it lacks is refused before anything is read."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.errors import ConfigError
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
