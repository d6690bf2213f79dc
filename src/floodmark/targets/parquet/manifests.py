"""A table as its manifests tell it. Each is a commit: what it adds and removes, with the head. Who creates the next one
has committed; a second one of its number can't be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field, ValidationError

from floodmark.errors import TargetError
from floodmark.model.outcome import Head, Landed, Rows
from floodmark.model.record import Record
from floodmark.targets.parquet.places import Place

FOLDER = "_floodmark/manifests"
CHECKPOINT = 20
"""Every so many commits one lists all files: a reader opens no more manifests than that, and a commit costs what it
changes."""
RECENT = 10
"""Commits that an ordinary look opens."""


class Manifest(Record):
    floodmark: int = 1
    version: int
    table_id: str
    attempt: str
    """Names the folder below `data` that its own files are in."""
    head: Head
    rows: dict[str, int | None]
    columns: dict[str, Any]
    """Spark's JSON of the table's schema: what all its files are read with."""
    partition_by: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    """Below `data`."""
    removed: tuple[str, ...] = ()
    files: tuple[str, ...] | None = None
    """All of them; None where the one before and the two above say it."""
    total: int
    """How many there are."""
    spent: dict[str, int] = Field(default_factory=dict)
    """The highest ordinal by pipeline."""
    cleaned: int = 0
    """What manifests up to this one have removed is gone from the disk."""
    forgotten: int = 0
    """Manifests up to this one are gone themselves."""

    @property
    def landed(self) -> Landed:
        return Landed(self.head, self.version, self.table_id, Rows(**self.rows))


@dataclass(frozen=True)
class Snapshot:
    """The table as it is at a version."""

    newest: Manifest
    files: tuple[str, ...]

    def next(self, **fields: Any) -> Manifest:
        """The manifest after this one: `added`, `removed` and what else it says."""
        version, removed = self.newest.version + 1, set(fields["removed"])
        files = (*(f for f in self.files if f not in removed), *fields["added"])
        listed = version % CHECKPOINT == 0 or len(files) <= len(fields["added"])
        fields |= {"files": files if listed else None, "total": len(files)}
        return Manifest(version=version, table_id=self.newest.table_id, **fields)


@dataclass(frozen=True)
class Manifests:
    place: Place
    _known: dict[int, Manifest] = field(default_factory=dict)
    """Those that were read: none of them ever changes."""

    def create(self, manifest: Manifest) -> bool:
        content = json.dumps(manifest.to_dict(), separators=(",", ":")).encode()
        return self.place.create(name_of(manifest.version), content)

    def newest(self) -> Manifest | None:
        versions = self._versions()
        return self.get(versions[0]) if versions else None

    def snapshot(self) -> Snapshot | None:
        newest = at = self.newest()
        if newest is None or at is None:
            return None
        added: list[str] = []
        removed: set[str] = set()
        while at.files is None:
            added += [name for name in at.added if name not in removed]
            removed |= set(at.removed)
            at = self.get(at.version - 1)
        return Snapshot(newest, (*(name for name in at.files if name not in removed), *added))

    def landed(self, pipeline: str, *, deep: bool = False) -> Iterator[Landed]:
        """Newest first. Those of others count, too, where not all are asked for."""
        for version in self._versions()[: None if deep else RECENT]:
            manifest = self.get(version)
            if manifest.head.pipeline == pipeline:
                yield manifest.landed

    def get(self, version: int) -> Manifest:
        found = self.find(version)
        if found is None:
            raise TargetError(f"{self.place.address}: the manifest of version {version} is gone")
        return found

    def find(self, version: int) -> Manifest | None:
        if version not in self._known:
            content = self.place.read(name_of(version))
            if content is None:
                return None
            try:
                self._known[version] = Manifest.from_dict(json.loads(content))
            except (ValueError, ValidationError) as error:
                raise TargetError(f"{self.place.address}/{name_of(version)} is not a manifest of ours") from error
        return self._known[version]

    def _versions(self) -> list[int]:
        names = (name.removesuffix(".json") for name in self.place.names(FOLDER))
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)


def name_of(version: int) -> str:
    return f"{FOLDER}/{version:020}.json"
