"""A table of plain Parquet files. Spark writes new ones into a folder of this attempt's own; a manifest, created only
if nobody has, makes them the table. So it is right where a rename is not atomic, too: on object stores."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from floodmark.errors import ConfigError, TargetError
from floodmark.model.duration import Duration
from floodmark.model.outcome import Landed, Load, Rows, TargetState
from floodmark.model.spec import ConnectionOptions, PipelineSpec
from floodmark.targets.deletes import check_deletes, survivors
from floodmark.targets.modes import other_partitions, refuse_layout, refuse_mode
from floodmark.targets.parquet.changes import Change, appended, replaced_range, upserted
from floodmark.targets.parquet.frames import Files, label_in, labels_of, only_columns, refuse_columns, write
from floodmark.targets.parquet.manifests import Manifest, Manifests, Snapshot
from floodmark.targets.parquet.reader import place_of
from floodmark.targets.parquet.tidy import ATTEMPTS, clean, remove_dead
from floodmark.targets.schema import Fit, fit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


_MISREAD = re.compile(r"[\\\x00-\x1f\x7f]")


class ParquetConnection(ConnectionOptions):
    """A folder of tables of Parquet files."""

    type: Literal["parquet"] = "parquet"
    path: str = Field(description="Folder or object store address; a relative one starts at the YAML file.")
    keep_removed: Duration = Field(
        default=timedelta(days=7), description="How long files stay that a load has replaced, for who still reads them."
    )

    @property
    def java(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class _Wanted:
    """The batch as it fits, and the table as it will be."""

    batch: DataFrame
    files: Files
    partition_by: tuple[str, ...]
    notices: tuple[str, ...] = ()


class ParquetTarget:
    def __init__(self, connection: ParquetConnection, spec: PipelineSpec, root: Path) -> None:
        refuse_mode(
            spec,
            "a folder of Parquet files",
            {"history": "each change of a row would rewrite the files that its older versions are in; use Delta"},
        )
        refuse_layout(spec, "a folder of Parquet files", "cluster_by")
        table = spec.target.table
        if ".." in Path(table).parts or Path(table).is_absolute():
            raise ConfigError(f"the table {table} leaves the connection's folder", declared_at=spec.at("target.table"))
        base = connection.path if "://" in connection.path else str((root / connection.path).resolve())
        self._spec, self._keep = spec, connection.keep_removed
        path = f"{base.rstrip('/')}/{table}"
        if misread := _MISREAD.search(path):
            raise ConfigError(
                f"{path} has {misread[0]!r} in it, and Spark would not find it again",
                declared_at=spec.at("target.table"),
                hint="choose another `target.table` or connection path; blanks, dots, quotes and all letters will do",
            )
        self._place = place_of(path)

    @property
    def resource(self) -> str:
        return f"parquet:{self._place.address}"

    def inspect(self, *, deep: bool = False) -> TargetState:
        manifests = Manifests(self._place)
        newest = manifests.newest()
        self._check_place(newest)
        if newest is None:
            return TargetState(exists=False)
        name = self._spec.name
        landed = tuple(manifests.landed(name, deep=deep))
        if not landed and name in newest.spent:
            landed = tuple(manifests.landed(name, deep=True))
        return TargetState(
            exists=True,
            table_id=newest.table_id,
            version=newest.version,
            landed=landed,
            top_ordinal=newest.spent.get(name, 0),
            has_rows=newest.total > 0,
            columns=tuple(str(field["name"]) for field in newest.columns["fields"]),
            partitions=newest.partition_by,
        )

    def find(self, batch_id: str) -> Landed | None:
        found = Manifests(self._place).landed(self._spec.name)
        return next((landed for landed in found if landed.head.batch == batch_id), None)

    def load(self, spark: SparkSession, batch: DataFrame, load: Load) -> Landed | None:
        check_deletes(batch, self._spec)
        refuse_columns(batch.schema, self._spec.target.table)
        manifests = Manifests(self._place)
        now = manifests.snapshot()
        if now is not None and now.newest.spent.get(self._spec.name, 0) >= load.head.ordinal:
            return None
        wanted = self._wanted(spark, batch, load, now)
        attempt = f"{1 if now is None else now.newest.version + 1:020}-{token_hex(8)}"
        self._place.create(f"{ATTEMPTS}/{attempt}", b"")
        try:
            manifest = self._written(manifests, now, wanted, load, attempt)
        except BaseException:
            self._forget(attempt)
            raise
        if not manifests.create(manifest):
            self._forget(attempt)
            self._check_spent(load)
            return None
        remove_dead(manifests, manifest)
        return Landed(load.head, manifest.version, manifest.table_id, Rows(**manifest.rows), wanted.notices)

    def _check_spent(self, load: Load) -> None:
        """That it was this ordinal which somebody else has committed, and not another pipeline's batch."""
        newest = Manifests(self._place).newest()
        if newest is not None and newest.spent.get(self._spec.name, 0) >= load.head.ordinal:
            return
        raise TargetError(
            f"another load into {self._spec.target.table} has committed in the meantime",
            table=self._spec.target.table,
            transient=True,
        )

    def _forget(self, attempt: str) -> None:
        """An attempt that has not committed, and will not; the next load removes what stays."""
        with suppress(TargetError):
            self._place.remove_folder(f"data/{attempt}")
            self._place.remove([f"{ATTEMPTS}/{attempt}"])

    # -- rows -----------------------------------------------------------------------------------------------------

    def _wanted(self, spark: SparkSession, batch: DataFrame, load: Load, now: Snapshot | None) -> _Wanted:
        address, names = self._place.address, () if now is None else now.files
        if now is None or load.intent.full:
            rows = survivors(batch)
            files = Files(spark, address, names, rows.schema)
            return _Wanted(rows, files, self._spec.target.partition_by)
        self._check_partitions(now)
        stored = _schema(now.newest)
        fitted = fit(stored, batch, self._spec)
        parts = {name.casefold() for name in now.newest.partition_by}
        # A partition's label is made of its value as it is written, which another type would change.
        whole = bool(fitted.renamed) or any(name.casefold() in parts for name, _ in fitted.widened)
        renamed = dict(fitted.renamed)
        files = Files(spark, address, names, _widened(stored, fitted), renamed, whole)
        partition_by = tuple(renamed.get(name, name) for name in now.newest.partition_by)
        return _Wanted(fitted.batch, files, partition_by, fitted.notices)

    def _change(self, wanted: _Wanted, load: Load) -> Change:
        files, batch = wanted.files, wanted.batch
        if load.intent.full:
            return Change(batch, files.names)
        if (load.mode == "upsert" or load.only_new) and files.names:
            return upserted(batch, files, load, lambda rows: self._candidates(rows, wanted))
        rows = only_columns(survivors(batch), files.schema)
        if load.mode == "replace_partitions":
            self._check_names(files)
            return Change(rows)
        if load.intent.replaces and files.names:
            return replaced_range(rows, files, load, whole=files.is_whole)
        return appended(rows, files, files.names if files.is_whole else ())

    def _candidates(self, rows: DataFrame, wanted: _Wanted) -> tuple[str, ...]:
        """Where a partition is part of the key, its rows are nowhere else."""
        names, parts = wanted.files.names, wanted.partition_by
        if not parts or wanted.files.is_whole or not set(parts) <= set(self._spec.target.keys):
            return names
        labels = labels_of(rows, parts)
        return tuple(name for name in names if label_in(name) in labels)

    def _written(
        self, manifests: Manifests, now: Snapshot | None, wanted: _Wanted, load: Load, attempt: str
    ) -> Manifest:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        change = self._change(wanted, load)
        seen = Observation()
        rows = change.frame.observe(seen, F.count(F.lit(1)).alias("rows"))
        write(rows, f"{self._place.address}/data/{attempt}", wanted.partition_by)
        total = seen.get.get("rows")
        added = [] if total == 0 else [f"{attempt}/{name}" for name in self._place.written(f"data/{attempt}")]
        removed = self._removed(change, wanted, load, added)
        counts = _counted(change, total, unknown=bool(removed) and not change.seen)
        cleaned = (0, 0) if now is None else clean(manifests, now.newest, load.head.at, self._keep)
        spent = {} if now is None else now.newest.spent
        fields: dict[str, Any] = {
            "attempt": attempt,
            "head": load.head,
            "rows": counts,
            "columns": wanted.files.schema.jsonValue(),
            "partition_by": wanted.partition_by,
            "added": tuple(added),
            "removed": tuple(removed),
            "spent": {**spent, self._spec.name: load.head.ordinal},
            "cleaned": cleaned[0],
            "forgotten": cleaned[1],
        }
        if now is None:
            return Manifest(version=1, table_id=token_hex(8), files=tuple(added), total=len(added), **fields)
        return now.next(**fields)

    def _removed(self, change: Change, wanted: _Wanted, load: Load, added: list[str]) -> tuple[str, ...]:
        if load.mode != "replace_partitions" or load.intent.full:
            return change.removed
        labels = {label_in(name) for name in added}
        return tuple(name for name in wanted.files.names if label_in(name) in labels)

    # -- what is refused ------------------------------------------------------------------------------------------

    def _check_place(self, newest: Manifest | None) -> None:
        try:
            self._place.check_writable()
        except TargetError as error:
            at = self._spec.at("target.connection")
            raise TargetError(error.message, table=self._spec.target.table, declared_at=at) from error
        if newest is None and (others := self._place.strangers()):
            raise TargetError(
                f"the folder of {self._spec.target.table} holds {others[0]}, and no manifest of ours",
                table=self._spec.target.table,
                declared_at=self._spec.at("target.table"),
                hint="choose another `target.table`, or move what is there",
            )

    def _check_partitions(self, now: Snapshot) -> None:
        declared, parts = self._spec.target.partition_by, now.newest.partition_by
        if self._spec.target.mode == "replace_partitions" and now.files and parts != declared:
            raise other_partitions(self._spec, parts)

    def _check_names(self, files: Files) -> None:
        if files.is_whole:
            raise TargetError(
                "a renamed column, or a partition's column of another type, would change partitions that stay",
                table=self._spec.target.table,
                declared_at=self._spec.at("target.renames"),
                hint=f"`floodmark run {self._spec.name} --full-refresh` makes the table anew",
            )


def _counted(change: Change, total: int | None, *, unknown: bool) -> dict[str, int | None]:
    """`unknown`: whole files have gone, and nobody has counted their rows."""
    if not change.seen:
        return {"read": total, "inserted": total, "updated": 0, "deleted": None if unknown else 0}
    counts = {name: seen.get.get(name) for name, seen in change.seen.items()}
    read = counts["inserted"] if change.read is None else change.read
    return {"read": read, "updated": 0, "deleted": 0, **counts}


def _schema(manifest: Manifest) -> StructType:
    from pyspark.sql.types import StructType

    return StructType.fromJson(manifest.columns)


def _widened(stored: StructType, fitted: Fit) -> StructType:
    from pyspark.sql.types import StructField, StructType

    names, kinds = dict(fitted.renamed), dict(fitted.widened)
    kept = [(names.get(f.name, f.name), f.dataType) for f in stored.fields]
    fields = [StructField(name, kinds.get(name, kind)) for name, kind in kept]
    return StructType([*fields, *(StructField(f.name, f.dataType) for f in fitted.added)])
