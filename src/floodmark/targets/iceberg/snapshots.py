"""A table's own history: which of our commits it holds *now*, told by the ancestors of its current snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, takewhile
from typing import Any

from pydantic import ValidationError

from floodmark.model.outcome import Head, Landed, Rows

HEAD = "floodmark.head"
"""The head, in the last snapshot of a load; with the pipeline's name behind it, a property of the table."""
ATTEMPT = "floodmark.attempt"
"""Who wrote a snapshot: the name of the branch that it was made on."""
PREFIX = "floodmark_"
"""Of the branches that loads are made on."""
RECENT = 50
"""Commits that are told of where nobody asks for all."""
MERGED = "spark.merge-into.num-target-rows-"


@dataclass(frozen=True)
class Snapshot:
    id: int
    parent: int | None
    sequence: int
    summary: dict[str, str]

    @cached_property
    def told(self) -> dict[str, Any]:
        """The head as it was written; empty where there is none of ours."""
        try:
            told = json.loads(self.summary.get(HEAD, "{}"))
        except json.JSONDecodeError:
            return {}
        return told if isinstance(told, dict) and "floodmark" in told else {}

    @cached_property
    def head(self) -> Head | None:
        try:
            return Head.from_dict(self.told) if self.told else None
        except ValidationError:
            return None

    @property
    def attempt(self) -> str | None:
        return self.summary.get(ATTEMPT)

    def count(self, name: str) -> int:
        return int(self.summary.get(name, 0))

    @property
    def rows(self) -> Rows:
        if f"{MERGED}inserted" in self.summary:
            inserted, updated, deleted = (self.count(f"{MERGED}{done}") for done in ("inserted", "updated", "deleted"))
            return Rows(None, inserted, updated, deleted)
        added = self.count("added-records")
        return Rows(added, added, 0, 0 if self.summary.get("operation") == "append" else self.deleted)

    @property
    def deleted(self) -> int | None:
        """Rows that went, by whole files. Where some of those were marked as deleted before, nobody has counted."""
        return None if self.count("removed-delete-files") else self.count("deleted-records")

    @property
    def marked(self) -> int | None:
        """Rows that a DELETE took away: marked, or left out of the files that were written again."""
        if self.count("removed-delete-files"):
            return None
        return self.count("deleted-records") - self.count("added-records") + self.count("added-position-deletes")


@dataclass(frozen=True)
class IcebergLog:
    table_id: str
    snapshots: dict[int, Snapshot]
    main: int | None
    past: tuple[int, ...]
    """Every snapshot that main was at, as far as the table remembers."""
    branches: dict[str, int]
    properties: dict[str, str]
    partitions: dict[str, str]
    """What each is made of, a column or a part of one, to its name."""

    @classmethod
    def of(cls, metadata: dict[str, Any]) -> IcebergLog:
        refs = metadata.get("refs") or {}
        current = (refs.get("main") or {}).get("snapshot-id", metadata.get("current-snapshot-id"))
        main = None if current in (None, -1) else int(current)
        return cls(
            table_id=str(metadata["table-uuid"]),
            snapshots={int(s["snapshot-id"]): _snapshot(s) for s in metadata.get("snapshots") or ()},
            main=main,
            past=tuple(int(entry["snapshot-id"]) for entry in metadata.get("snapshot-log") or ()),
            branches={name: int(ref["snapshot-id"]) for name, ref in refs.items() if ref.get("type") == "branch"},
            properties=dict(metadata.get("properties") or {}),
            partitions=_partitions(metadata),
        )

    @property
    def version(self) -> int:
        return 0 if self.main is None or self.main not in self.snapshots else self.snapshots[self.main].sequence

    @property
    def has_files(self) -> bool:
        return self.main in self.snapshots and self.snapshots[self.main].count("total-data-files") > 0

    @property
    def leftovers(self) -> list[str]:
        """Branches of loads that nobody has ended."""
        return sorted(name for name in self.branches if name.startswith(PREFIX))

    def ancestors(self, start: int | None) -> Iterator[Snapshot]:
        """Newest first, with `start` itself, as far as they have not expired."""
        while start is not None and (snapshot := self.snapshots.get(start)) is not None:
            yield snapshot
            start = snapshot.parent

    def landed(self, pipeline: str, most: int | None = None) -> tuple[Landed, ...]:
        current = (s for s in self.ancestors(self.main) if s.told.get("pipeline") == pipeline)
        found = [
            Landed(s.head, s.sequence, self.table_id, self._rows(s))
            for s in islice(current, most)
            if s.head is not None
        ]
        if not found and (kept := self._kept(pipeline)) is not None and self._has_expired(kept):
            return (Landed(kept.head, kept.sequence, self.table_id, Rows()),)
        return tuple(found)

    def spent(self, pipeline: str) -> int:
        """The highest ordinal that main ever had, commits that were rolled back included. A branch that was never
        published counts for nothing."""
        kept = self._kept(pipeline)
        highest = 0 if kept is None else kept.top
        seen: set[int] = set()
        for start in (self.main, *self.past):
            for snapshot in self.ancestors(start):
                if snapshot.id in seen:
                    break
                seen.add(snapshot.id)
                if snapshot.told.get("pipeline") == pipeline:
                    highest = max(highest, int(snapshot.told.get("ordinal", 0)))
        return highest

    def wiped_by(self) -> str | None:
        """A foreign commit that emptied the table after the newest head."""
        for snapshot in self.ancestors(self.main):
            if snapshot.attempt is not None:
                return None
            removed = snapshot.count("deleted-data-files") or snapshot.count("deleted-records")
            if removed and not snapshot.count("total-data-files"):
                return f"{snapshot.summary.get('operation')} in snapshot {snapshot.id}"
        return None

    def _rows(self, snapshot: Snapshot) -> Rows:
        """Of a whole load: one that replaces a range deletes in a snapshot of its own."""
        rows = snapshot.rows
        before = self.ancestors(snapshot.parent)
        for earlier in takewhile(lambda s: s.attempt is not None and s.attempt == snapshot.attempt, before):
            deleted = earlier.marked
            known = rows.deleted is not None and deleted is not None
            rows = replace(rows, deleted=(rows.deleted or 0) + (deleted or 0) if known else None)
        return rows

    def _kept(self, pipeline: str) -> Kept | None:
        return Kept.read(self.properties.get(f"{HEAD}.{pipeline}"))

    def _has_expired(self, kept: Kept) -> bool:
        """Its snapshot is older than all that main still knows of itself: not one that was rolled back."""
        known = list(self.ancestors(self.main))
        cut = bool(known) and known[-1].parent is not None
        return cut and kept.snapshot not in self.snapshots and kept.sequence < known[-1].sequence


@dataclass(frozen=True)
class Kept:
    """The newest head as a property of the table: snapshots expire."""

    head: Head
    top: int
    snapshot: int
    sequence: int

    @classmethod
    def read(cls, text: str | None) -> Kept | None:
        try:
            told = json.loads(text or "{}")
            return cls(Head.from_dict(told["head"]), int(told["top"]), int(told["snapshot"]), int(told["sequence"]))
        except (ValueError, KeyError, TypeError, ValidationError):
            return None

    def written(self) -> str:
        told = {"head": self.head.to_dict(), "top": self.top, "snapshot": self.snapshot, "sequence": self.sequence}
        return json.dumps(told, separators=(",", ":"))


def _snapshot(entry: dict[str, Any]) -> Snapshot:
    parent = entry.get("parent-snapshot-id")
    return Snapshot(
        id=int(entry["snapshot-id"]),
        parent=None if parent is None else int(parent),
        sequence=int(entry.get("sequence-number") or 0),
        summary={str(k): str(v) for k, v in (entry.get("summary") or {}).items()},
    )


def _partitions(metadata: dict[str, Any]) -> dict[str, str]:
    schema = next(s for s in metadata["schemas"] if s.get("schema-id", 0) == metadata.get("current-schema-id", 0))
    columns = {field["id"]: str(field["name"]) for field in schema["fields"]}
    specs = metadata.get("partition-specs") or ()
    spec: dict[str, Any] = next((s for s in specs if s["spec-id"] == metadata.get("default-spec-id", 0)), {})
    found = {}
    for field in spec.get("fields", ()):
        column, how = columns.get(field["source-id"], str(field["name"])), field["transform"]
        if how != "void":
            found[column if how == "identity" else f"{how} of {column}"] = str(field["name"])
    return found
