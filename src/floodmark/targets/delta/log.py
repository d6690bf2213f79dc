"""A Delta table's own history, read without Spark: which of our commits the table holds *now*."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from floodmark.errors import MissingExtra, TargetError
from floodmark.model.outcome import Head, Kept, Landed, Rows

RECENT = 50
"""Commits read at first; all of them only where the head is not among these."""

OURS = "floodmark.pipeline"
"""Property of a table that we made: as long as nothing is in it, it may be made again with other columns."""

KEPT = "floodmark.head."
"""Property of a table, by pipeline. Properties live in checkpoints, and a RESTORE undoes them with the rows."""

NOTES = {step: f"floodmark:{step}" for step in ("compact", "vacuum")}
"""Transaction ids whose version is the second of the last care. They too outlive the log's cleanup, and unlike a
property they are in no other writer's way."""


def app_id(pipeline: str) -> str:
    """One for all lanes: a backfill that was paused and overtaken is then fenced like any other load."""
    return f"floodmark:{pipeline}:main"


@dataclass(frozen=True)
class Commit:
    version: int
    operation: str
    parameters: dict[str, Any]
    metrics: dict[str, Any]
    at_ms: int
    head: Head | None

    @property
    def rows(self) -> Rows:
        def metric(*names: str) -> int | None:
            return next((int(self.metrics[n]) for n in names if self.metrics.get(n) is not None), None)

        if self.operation == "MERGE":
            return Rows(
                metric("numSourceRows"),
                metric("numTargetRowsInserted"),
                metric("numTargetRowsUpdated"),
                metric("numTargetRowsDeleted"),
            )
        written = metric("numOutputRows")
        if written is not None:
            # Replacing a range rewrites the rest of the files that it touches.
            written -= metric("numCopiedRows") or 0
        # Where whole files go, nobody has counted their rows.
        deleted = metric("numDeletedRows")
        if self._replaces_rows and written is not None:
            updated = deleted or 0
            return Rows(written, written - updated, updated, 0)
        return Rows(written, written, 0, 0 if deleted is None and not metric("numRemovedFiles") else deleted)

    @property
    def _replaces_rows(self) -> bool:
        """Those with the keys of the ones that it writes."""
        return any(self.parameters.get(name) for name in ("replaceOnCond", "replaceUsingCols"))

    @property
    def wipes(self) -> bool:
        """Empties or replaces the whole table."""
        if "REPLACE" in self.operation or self.operation == "TRUNCATE":
            return True
        if self.operation == "WRITE":
            parts = str(self.parameters.get("isDynamicPartitionOverwrite")).lower() == "true"
            whole = not self.parameters.get("predicate") and not self._replaces_rows and not parts
            return self.parameters.get("mode") == "Overwrite" and whole
        return self.operation == "DELETE" and self.parameters.get("predicate") in (None, "", "[]", '["true"]')


@dataclass(frozen=True)
class DeltaLog:
    table_id: str
    version: int
    commits: tuple[Commit, ...]
    """Newest first, as recorded."""
    has_files: bool
    properties: dict[str, str]
    spent: dict[str, int]
    """The highest transaction version by application id."""
    partitions: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    made_at: datetime | None = None

    def current(self) -> tuple[Commit, ...]:
        """What led to the table as it is: commits that a RESTORE undid are left out."""
        kept: list[Commit] = []
        ceiling: int | None = None
        for commit in self.commits:
            if ceiling is not None and commit.version > ceiling:
                continue
            if commit.operation == "RESTORE":
                ceiling = self._restored_to(commit)
                continue
            kept.append(commit)
        return tuple(kept)

    def _restored_to(self, restore: Commit) -> int:
        version = restore.parameters.get("version")
        if version is not None:
            return int(version)
        moment = datetime.fromisoformat(str(restore.parameters["timestamp"])).timestamp() * 1000
        return max((c.version for c in self.commits if c.at_ms <= moment), default=-1)

    def is_untouched(self, pipeline: str) -> bool:
        """A first load made the table and then failed: what it was to hold may have been declared anew since."""
        return not self.has_files and self.properties.get(OURS) == pipeline and not self.landed(pipeline)

    def landed(self, pipeline: str) -> tuple[Landed, ...]:
        """Newest first. The last one may be known from what the table has kept, its commit being forgotten."""
        found = tuple(
            Landed(c.head, c.version, self.table_id, c.rows)
            for c in self.current()
            if c.head is not None and c.head.pipeline == pipeline
        )
        kept = self.kept(pipeline)
        if kept is None or (found and found[-1].head.ordinal <= kept.head.ordinal):
            return found
        return (*found, kept.to_landed())

    def kept(self, pipeline: str) -> Kept | None:
        kept = _kept(self.properties.get(f"{KEPT}{pipeline}"))
        if kept is None or kept.table_id != self.table_id:
            return None
        # A RESTORE takes the property back with the rows, unless it came between the look and the property.
        later = [c for c in self.commits if c.operation == "RESTORE" and c.version > kept.seen]
        return None if any(self._restored_to(c) < kept.version for c in later) else kept

    def pipelines(self) -> set[str]:
        """All that have a head here."""
        heads = {c.head.pipeline for c in self.current() if c.head is not None}
        return heads | {name.removeprefix(KEPT) for name in self.properties if name.startswith(KEPT)}

    def tells_of(self, pipeline: str) -> bool:
        """Whether the commits that were read say where this pipeline stands."""
        if any(c.head is not None and c.head.pipeline == pipeline for c in self.current()):
            return True
        kept = self.kept(pipeline)
        if kept is None or kept.head.ordinal < self.spent[app_id(pipeline)]:
            return False
        return self.commits[-1].version <= kept.seen + 1

    def cared_at(self, step: str) -> datetime | None:
        second = self.spent[NOTES[step]]
        return datetime.fromtimestamp(second, UTC) if second else None

    def wiped_by(self) -> str | None:
        """A foreign commit that emptied the table after the newest head."""
        for commit in self.current():
            if commit.head is not None:
                return None
            if commit.wipes:
                return f"{commit.operation} at version {commit.version}"
        return None


def read_log(path: str, pipeline: str, *, deep: bool = False) -> DeltaLog | None:
    """None when there is no Delta table at the path."""
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError
    except ModuleNotFoundError as error:
        raise MissingExtra("deltalake is not installed", hint="pip install 'floodmark[delta]'") from error
    try:
        try:
            table = DeltaTable(path)
        except TableNotFoundError:
            # Asked only now: it lists the whole log, and says more of a folder that can't be read.
            if DeltaTable.is_deltatable(path):
                raise
            return None
        metadata = table.metadata()
        log = DeltaLog(
            table_id=str(metadata.id),
            version=table.version(),
            commits=_commits(table.history(None if deep else RECENT)),
            has_files=bool(table.file_uris()),
            columns=tuple(field.name for field in table.schema().fields),
            properties=dict(metadata.configuration),
            spent={app: table.transaction_version(app) or 0 for app in (app_id(pipeline), *NOTES.values())},
            partitions=tuple(metadata.partition_columns),
            made_at=datetime.fromtimestamp(metadata.created_time / 1000, UTC) if metadata.created_time else None,
        )
        if not deep and len(log.commits) == RECENT and not log.tells_of(pipeline):
            log = replace(log, commits=_commits(table.history()))
        return log
    except (DeltaError, OSError) as error:
        raise TargetError(f"can't read the Delta table at {path}: {error}") from error


def _commits(history: list[dict[str, Any]]) -> tuple[Commit, ...]:
    return tuple(
        Commit(
            version=int(entry["version"]),
            operation=str(entry.get("operation", "")),
            parameters=entry.get("operationParameters") or {},
            metrics=entry.get("operationMetrics") or {},
            at_ms=int(entry.get("timestamp", 0)),
            head=_head(entry.get("userMetadata")),
        )
        for entry in history
    )


def _kept(value: str | None) -> Kept | None:
    """Somebody may have written it by hand: then the history is asked, as if there were none."""
    try:
        return None if value is None else Kept.from_dict(json.loads(value))
    except (json.JSONDecodeError, ValidationError):
        return None


def _head(metadata: object) -> Head | None:
    """Other tools write their own metadata: what is not ours is no head."""
    if not isinstance(metadata, str) or '"floodmark"' not in metadata:
        return None
    try:
        return Head.from_dict(json.loads(metadata))
    except (json.JSONDecodeError, ValidationError):
        return None
