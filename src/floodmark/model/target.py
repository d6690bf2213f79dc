"""What a user declares of the table that rows land in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Literal

from pydantic import Field, model_validator

from floodmark.model.duration import Duration, Interval
from floodmark.model.options import Options

Mode = Literal["append", "upsert", "replace_range", "replace_partitions", "replace", "history"]
SchemaPolicy = Literal["evolve", "freeze", "discard"]


class HistorySpec(Options):
    """What the columns are called that mode history adds."""

    valid_from: str = Field(default="valid_from", description="Where a version begins: the cursor's value.")
    valid_to: str = Field(
        default="valid_to", description="Where it ends, itself not included; NULL as long as it holds."
    )
    is_current: str = Field(default="is_current", description="True for the version that holds now.")

    @property
    def names(self) -> tuple[str, str, str]:
        return (self.valid_from, self.valid_to, self.is_current)

    @model_validator(mode="after")
    def _three_columns(self) -> HistorySpec:
        if len({name.casefold() for name in self.names}) < len(self.names):
            raise ValueError("the columns of a history need three names")
        return self


class MaintenanceSpec(Options):
    """How often a table is taken care of, at the end of a run that has loaded something."""

    compact: Interval = Field(
        default=timedelta(hours=1),
        description="Small files are made into large ones at most this often, once there are enough of them; or `off`.",
    )
    vacuum: Interval = Field(
        default=timedelta(days=7),
        description="Files that no kept version needs are removed at most this often; or `off`. A table that Floodmark "
        "did not make is left alone unless this is set.",
    )
    keep: Duration | None = Field(
        default=None,
        description="How long files of older versions are kept for readers and time travel: 7d, or longer where the "
        "table itself asks for it.",
    )

    @property
    def vacuum_is_declared(self) -> bool:
        return "vacuum" in self.model_fields_set


class TargetSpec(Options):
    connection: str = Field(description="Name of a connection.")
    table: str = Field(description="Table to write, below the connection's path.")
    mode: Mode = Field(
        description="How rows land: append; upsert by keys; replace the range that was read, the partitions that are "
        "in the batch, or the whole table; or keep each version of a row as history."
    )
    keys: tuple[str, ...] = Field(default=(), description="Columns that identify a row; upsert and history need them.")
    history: HistorySpec = Field(default=HistorySpec(), description="Names of the columns that mode history adds.")
    partition_by: tuple[str, ...] = Field(default=(), description="Partition columns of a new table.")
    cluster_by: tuple[str, ...] = Field(default=(), description="Clustering columns of a new table.")
    deletion_vectors: bool = Field(
        default=True, description="Mark changed rows instead of rewriting files (upsert and history tables)."
    )
    schema_changes: SchemaPolicy = Field(
        default="evolve",
        description="When the source's columns change: follow them, refuse, or keep the table as it is.",
    )
    new_columns: Literal["leave", "backfill"] = Field(
        default="leave",
        description="Rows that were loaded before a column was there: leave it NULL, or read them again to fill it.",
    )
    renames: Mapping[str, str] = Field(
        default_factory=dict, description="Columns that were renamed since the table was made, old name to new."
    )
    provenance: bool = Field(
        default=False, description="Add `_floodmark_batch`, `_floodmark_loaded_at` and `_floodmark_op` to each row."
    )

    maintenance: MaintenanceSpec = Field(
        default=MaintenanceSpec(),
        description="Table care of Delta and Iceberg: compaction and removal of old files. Other targets need none.",
    )

    @property
    def matches_keys(self) -> bool:
        """A row finds what the table holds of it by its keys, so that reading it again changes nothing."""
        return self.mode in ("upsert", "history")

    @property
    def appends(self) -> bool:
        """Each row that is read is a row of its own: only what is settled may be loaded, and no range twice without
        replacing it."""
        return self.mode in ("append", "replace_range")

    @model_validator(mode="after")
    def _one_layout(self) -> TargetSpec:
        if self.partition_by and self.cluster_by:
            raise ValueError("set `partition_by` or `cluster_by`, not both: Delta takes one of them")
        if self.mode == "replace_partitions" and not self.partition_by:
            raise ValueError("mode replace_partitions needs `partition_by`: the columns whose values make a partition")
        return self
