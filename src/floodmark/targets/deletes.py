"""Batches that say of each row whether it is to go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from floodmark.errors import ConfigError
from floodmark.model.names import DELETED
from floodmark.model.spec import PipelineSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def has_deletes(batch: DataFrame) -> bool:
    return DELETED in batch.columns


def check_deletes(batch: DataFrame, spec: PipelineSpec) -> None:
    """Before anything is read."""
    if not has_deletes(batch):
        return
    if not spec.target.matches_keys:
        raise ConfigError(
            f'column "{DELETED}" says which rows are to go, and mode {spec.target.mode} has no keys to find them by',
            column=DELETED,
            declared_at=spec.at("target.mode"),
            hint="use mode upsert or history, or leave the column out",
        )
    kind = batch.schema[DELETED].dataType.typeName()
    if kind != "boolean":
        raise ConfigError(
            f'column "{DELETED}" says which rows are to go, so it must be boolean; it is {kind}',
            column=DELETED,
            declared_at=spec.at("transform"),
        )


def table_schema(batch: DataFrame) -> StructType:
    """What of the batch is kept."""
    return batch.drop(DELETED).schema


def survivors(batch: DataFrame) -> DataFrame:
    """For a table that holds nothing of them yet."""
    from pyspark.sql import functions as F

    if not has_deletes(batch):
        return batch
    return batch.where(~F.coalesce(F.col(DELETED), F.lit(False))).drop(DELETED)
