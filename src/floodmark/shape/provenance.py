"""Columns that say by which load a row came, when, and whether it was new."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from floodmark.errors import ConfigError
from floodmark.model.names import BATCH, LOADED_AT, OP, PROVENANCE
from floodmark.model.spec import PipelineSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_provenance(batch: DataFrame, spec: PipelineSpec, batch_id: str, now: datetime) -> DataFrame:
    """All rows of a batch are inserts until a merge finds them in the table."""
    from pyspark.sql import functions as F

    if not spec.target.provenance:
        return batch
    taken = {name.casefold() for name in batch.columns} & set(PROVENANCE)
    if taken:
        raise ConfigError(
            f"the source has a column {min(taken)} of its own",
            column=min(taken),
            declared_at=spec.at("target.provenance"),
            hint="leave it out with `columns: {NAME: drop}`, or set `provenance: false`",
        )
    moment = now.astimezone(UTC).isoformat(sep=" ", timespec="microseconds")
    return batch.withColumns({BATCH: F.lit(batch_id), LOADED_AT: F.lit(moment).cast("timestamp"), OP: F.lit("insert")})
