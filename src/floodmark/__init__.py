"""Floodmark: incremental pipelines on Spark that move what changed, exactly once."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from floodmark.model.version import VERSION

__version__ = VERSION

__all__ = [
    "FloodmarkError",
    "PipelineState",
    "Position",
    "Project",
    "RunPlan",
    "RunResult",
    "create_state_store",
    "declare",
    "load",
    "parquet_table",
]

_ROOMS = {
    "FloodmarkError": "floodmark.errors",
    "PipelineState": "floodmark.model.ledger",
    "Position": "floodmark.model.position",
    "Project": "floodmark.project",
    "RunPlan": "floodmark.model.plan",
    "RunResult": "floodmark.model.outcome",
    "create_state_store": "floodmark.stores",
    "declare": "floodmark.opening",
    "load": "floodmark.opening",
    "parquet_table": "floodmark.targets.parquet.reader",
}

if TYPE_CHECKING:
    from floodmark.errors import FloodmarkError
    from floodmark.model.ledger import PipelineState
    from floodmark.model.outcome import RunResult
    from floodmark.model.plan import RunPlan
    from floodmark.model.position import Position
    from floodmark.opening import declare, load
    from floodmark.project import Project
    from floodmark.stores import create_state_store
    from floodmark.targets.parquet.reader import parquet_table


def __getattr__(name: str) -> Any:
    """Public names are imported when asked for: `floodmark --help` should not wait for all of them."""
    if name not in _ROOMS:
        raise AttributeError(f"module 'floodmark' has no attribute {name!r}")
    return getattr(import_module(_ROOMS[name]), name)
