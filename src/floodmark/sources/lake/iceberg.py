"""Iceberg tables. Their metadata is read as the catalog has it; a version is a snapshot that main was at."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from floodmark.connections.iceberg import IcebergConnection
from floodmark.connections.iceberg_catalog import Catalog, Metadata
from floodmark.errors import SourceError, TargetError
from floodmark.model.spec import PipelineSpec
from floodmark.model.table import Column
from floodmark.sources.lake.source import LakeSource
from floodmark.sources.lake.values import column_of
from floodmark.sources.lake.versions import Version, Versions
from floodmark.sources.sql import unknown_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = {"int": "integer", "timestamptz": "timestamp", "timestamp": "timestamp_ntz"}
"""Spark's names for Iceberg's types, where they differ."""


class IcebergSource(LakeSource):
    def __init__(self, connection: IcebergConnection, spec: PipelineSpec, root: Path) -> None:
        super().__init__(spec)
        self._catalog = Catalog(connection, root)
        self._table = connection.table_parts(self._name, spec.at("source.table"))
        self._relation = self._related(None)

    def _table_sql(self) -> str:
        return self._catalog.sql_name(*self._table)

    def _prepare(self, spark: SparkSession) -> None:
        self._catalog.attach(spark)

    def _newest(self) -> int | None:
        return _main(self._metadata())

    def _columns(self, version: int | None) -> tuple[Column, ...]:
        """Those of the snapshot, as it will be read: the table's may have changed since."""
        metadata = self._metadata()
        version = _main(metadata) if version is None else version
        snapshots = {s["snapshot-id"]: s for s in metadata.get("snapshots") or ()}
        schema_id = snapshots.get(version, {}).get("schema-id", metadata["current-schema-id"])
        fields = next(s["fields"] for s in metadata["schemas"] if s["schema-id"] == schema_id)
        return tuple(_column(f["name"], f["type"], nullable=not f.get("required", False)) for f in fields)

    def _versions(self) -> Versions:
        metadata = self._metadata()
        kept = {s["snapshot-id"] for s in metadata.get("snapshots") or ()}
        log = [e for e in metadata.get("snapshot-log") or () if e["snapshot-id"] in kept]
        return Versions([Version(e["snapshot-id"], datetime.fromtimestamp(e["timestamp-ms"] / 1000, UTC)) for e in log])

    def _kept_from(self, version: int) -> int | None:  # noqa: ARG002 - the lake's shape
        """A snapshot that has expired is not in the metadata any more."""
        return None

    def _metadata(self) -> Metadata:
        try:
            found = self._catalog.metadata(self._table[:-1], self._table[-1])
        except TargetError as error:
            raise SourceError(
                error.message,
                table=self._name,
                declared_at=self._spec.at("source.connection"),
                hint=error.hint,
                transient=error.transient,
            ) from error
        if found is None:
            raise unknown_table(self._name, self._catalog.place, self._names(), self._spec.at("source.table"))
        return found

    def _names(self) -> list[str]:
        """Of the tables beside it, where the catalog is files on this machine."""
        folder = self._catalog.folder
        found = [] if folder is None else folder.glob("*/*/metadata")
        return sorted(".".join(path.parent.relative_to(folder).parts) for path in found if folder is not None)


def _main(metadata: Metadata) -> int | None:
    refs = metadata.get("refs") or {}
    current = (refs.get("main") or {}).get("snapshot-id", metadata.get("current-snapshot-id"))
    return None if current in (None, -1) else int(current)


def _column(name: str, kind: object, *, nullable: bool) -> Column:
    word = kind if isinstance(kind, str) else str(kind["type"]) if isinstance(kind, dict) else "other"
    return column_of(name, KINDS.get(word, word), nullable=nullable)
