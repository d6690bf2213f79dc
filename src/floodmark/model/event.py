"""What a run tells while it works. Sinks may show or count events; they never change the outcome."""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.model.outcome import RunResult
from floodmark.model.plan import RunPlan


@dataclass(frozen=True)
class Planned:
    plan: RunPlan


@dataclass(frozen=True)
class StageStarted:
    pipeline: str
    stage: str
    slice: int
    slices: int
    detail: str = ""


@dataclass(frozen=True)
class StageFinished:
    pipeline: str
    stage: str
    slice: int
    seconds: float
    rows: int | None = None


@dataclass(frozen=True)
class Notice:
    """Something a person should know, though nothing failed."""

    pipeline: str
    text: str


@dataclass(frozen=True)
class RunFinished:
    result: RunResult


Event = Planned | StageStarted | StageFinished | Notice | RunFinished
