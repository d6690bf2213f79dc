"""The batch's columns against the table's: what the schema policy makes of the difference, for any target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from floodmark.errors import TargetError
from floodmark.exact import changed
from floodmark.model.names import DELETED, PROVENANCE, spark_name
from floodmark.model.spec import PipelineSpec
from floodmark.targets.widening import common_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField, StructType


@dataclass(frozen=True)
class Fit:
    """What has to happen to the table before the load, and the batch as it fits then."""

    batch: DataFrame
    renamed: tuple[tuple[str, str], ...] = ()
    added: tuple[StructField, ...] = ()
    widened: tuple[tuple[str, DataType], ...] = ()
    notices: tuple[str, ...] = ()
    is_whole: bool = True
    """The batch has a value for each column of the table."""


def fit(table: StructType, batch: DataFrame, spec: PipelineSpec) -> Fit:
    """Raises TargetError where the policy, or the types themselves, forbid it."""
    return _Fitting(table, batch, spec).fit()


class _Fitting:
    def __init__(self, table: StructType, batch: DataFrame, spec: PipelineSpec) -> None:
        self._spec = spec
        self._batch = batch
        self._policy = spec.target.schema_changes
        self._theirs = {name.casefold() for name in batch.columns}
        # Only once: afterwards the table has the new name, and the declaration may stay in the file.
        self._renamed = {
            field.name: new
            for field in table.fields
            if (new := spec.target.renames.get(field.name)) is not None
            and new.casefold() in self._theirs
            and new.casefold() not in {other.name.casefold() for other in table.fields}
        }
        # Spark finds columns whatever their case, so we do, too.
        self._table = {self._renamed.get(f.name, f.name).casefold(): f for f in table.fields}
        self._forbidden: list[str] = []
        self._notices: list[str] = []

    def fit(self) -> Fit:
        added: list[StructField] = []
        widened: list[tuple[str, DataType]] = []
        kept: list[Column] = []
        reshaped = False
        notices = self._notices
        notices += [f"column {old} is called {new} now" for old, new in self._renamed.items()]
        notices += self._unmet_renames()
        for field in self._batch.schema.fields:
            value = self._batch[spark_name(field.name)]
            if field.name == DELETED:
                kept.append(value)
                continue
            have = self._table.get(field.name.casefold())
            if have is not None:
                wanted = self._type(field, have)
                if _sql(wanted) != _sql(have.dataType):
                    widened.append((self._renamed.get(have.name, have.name), wanted))
                    notices.append(f"column {have.name} grew from {_sql(have.dataType)} to {_sql(wanted)}")
                same = _sql(wanted) == _sql(field.dataType)
                kept.append(value if same else _as(value, field, wanted))
                reshaped = reshaped or not same
            elif self._is_new(field):
                added.append(field)
                kept.append(value)
                notices += [] if field.name in PROVENANCE else [f"column {field.name} is new: added to the table"]
            elif self._policy == "discard":
                notices.append(f"column {field.name} is new: left out, since `schema_changes` is discard")
        notices += [f"column {name} is gone from the source: new rows have NULL in it" for name in self._gone()]
        if self._forbidden:
            raise self._refusal()
        reshaped = reshaped or len(kept) < len(self._batch.columns)
        batch = self._batch.select(*kept) if reshaped else self._batch
        whole = self._table.keys() <= {name.casefold() for name in batch.columns}
        return Fit(batch, tuple(self._renamed.items()), tuple(added), tuple(widened), tuple(notices), whole)

    def _unmet_renames(self) -> list[str]:
        """Misspelt ones, most likely: a column would be added beside the old one, or nothing would happen at all."""
        renames = self._spec.target.renames
        notices = []
        for old, new in renames.items():
            if new in renames:
                continue  # renamed once more since
            if new.casefold() not in self._theirs:
                notices.append(f"`renames` has {old}: {new}, but the source has no column {new}")
            elif old.casefold() not in self._table and new.casefold() not in self._table:
                notices.append(f"`renames` has {old}: {new}, but the table has no column {old}")
        return notices

    def _is_new(self, field: StructField) -> bool:
        if self._policy == "freeze" and field.name not in PROVENANCE:
            self._forbidden.append(f"{field.name} is new")
        return self._policy == "evolve" or field.name in PROVENANCE

    def _gone(self) -> list[str]:
        gone = [f.name for key, f in self._table.items() if key not in self._theirs and f.name not in PROVENANCE]
        if self._policy == "freeze":
            self._forbidden += [f"{name} is gone" for name in gone]
        return gone if self._policy != "freeze" else []

    def _type(self, field: StructField, have: StructField) -> DataType:
        """What the table's column shall be."""
        common = common_type(have.dataType, field.dataType)
        if common is not None and _sql(common) == _sql(have.dataType):
            return have.dataType
        if self._policy == "discard":
            kinds = f"{_sql(field.dataType)} in the source: cast back to {_sql(have.dataType)}"
            self._notices.append(f"column {field.name} is {kinds}, since `schema_changes` is discard")
            return have.dataType
        if common is None or self._policy == "freeze":
            self._forbidden.append(f"{field.name} was {_sql(have.dataType)} and is {_sql(field.dataType)}")
            return have.dataType
        return common

    def _refusal(self) -> TargetError:
        spec, name = self._spec, self._spec.name
        frozen = ", and `schema_changes` is freeze" if self._policy == "freeze" else ""
        return TargetError(
            f"the columns are not those of {spec.target.table}{frozen}: {'; '.join(self._forbidden)}",
            table=spec.target.table,
            declared_at=spec.at("target.schema_changes"),
            hint="choose one:\n"
            "  target: {schema_changes: evolve}      follow new, wider and dropped columns\n"
            "  target: {schema_changes: discard}     keep the table's columns and types; what does not fit fails\n"
            "  columns: {NAME: {cast: TYPE}}         or a transform that makes it fit\n"
            f"  floodmark run {name} --full-refresh   rebuild the table with the new columns",
        )


def _as(value: Column, field: StructField, wanted: DataType) -> Column:
    """Where values may be lost on the way, one that would be fails the load by name."""
    from pyspark.sql import functions as F

    if common_type(field.dataType, wanted) == wanted:
        return value.cast(wanted).alias(field.name)
    cast = value.try_cast(wanted)
    said = F.concat(
        F.lit(f'floodmark: column "{field.name}" holds '),
        value.cast("string"),
        F.lit(f", which does not fit into {_sql(wanted)}"),
    )
    lost = changed(value, field.dataType, cast, wanted)
    return F.when(lost, F.raise_error(said)).otherwise(cast).alias(field.name)


def _sql(kind: DataType) -> str:
    return kind.simpleString()
