"""The base of all that a user declares."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Options(BaseModel):
    """Unknown keys are errors: a misspelt option must never be silently ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
