"""How hard a run may lean on a database. The same options for every server; each source says them in its own words."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from floodmark.model.duration import Duration
from floodmark.model.spec import ConnectionOptions


class GentleOptions(ConnectionOptions):
    application_name: str = Field(default="floodmark", description="What the server shows our sessions as.")
    statement_timeout: Duration | None = Field(
        default=None, description="The server ends a statement of ours that takes longer. No limit when unset."
    )
    lock_timeout: Duration = Field(
        default=timedelta(seconds=10), description="How long a statement of ours waits behind somebody's lock."
    )
    max_connections: int = Field(
        default=8, ge=3, le=1000, description="Sessions that one run may have open at once, all its readers included."
    )


def milliseconds(limit: timedelta) -> int:
    return max(1, int(limit.total_seconds() * 1000))
