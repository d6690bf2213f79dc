"""Table care: what a table tells of it, what is wanted, what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from floodmark.model.ledger import PipelineState

Step = Literal["keep", "compact", "vacuum"]
"""`keep` writes the heads where no expiry of the history reaches them."""


@dataclass(frozen=True)
class Condition:
    """Read with the heads and at no cost of its own. None is unknown, or never."""

    made_at: datetime | None
    compacted_at: datetime | None
    vacuumed_at: datetime | None
    keep_within: timedelta
    """A head that is older than this is kept before the history may forget it."""
    is_ours: bool
    """Floodmark made the table."""


@dataclass(frozen=True)
class Care:
    """One step. `state` is the ledger of the pipeline whose run takes care."""

    step: Step
    state: PipelineState
    at: datetime


@dataclass(frozen=True)
class CareDone:
    """In files of data; both 0 where there was nothing to do."""

    removed: int = 0
    added: int = 0
