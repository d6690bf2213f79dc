"""A Delta table's own history, read without Spark: which of our commits the table holds *now*."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from floodmark.errors import MissingExtra, TargetError
from floodmark.model.outcome import Head, Landed, Rows

RECENT = 50
"""Commits read at first; all of them only where the head is not among these."""


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

    def landed(self, pipeline: str) -> tuple[Landed, ...]:
        return tuple(
            Landed(c.head, c.version, self.table_id, c.rows)
            for c in self.current()
            if c.head is not None and c.head.pipeline == pipeline
        )

    def wiped_by(self) -> str | None:
        """A foreign commit that emptied the table after the newest head."""
        for commit in self.current():
            if commit.head is not None:
                return None
            if commit.wipes:
                return f"{commit.operation} at version {commit.version}"
        return None


def read_log(path: str, app_ids: tuple[str, ...], *, deep: bool = False) -> DeltaLog | None:
    """None when there is no Delta table at the path."""
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError
    except ModuleNotFoundError as error:
        raise MissingExtra("deltalake is not installed", hint="pip install 'floodmark[delta]'") from error
    try:
        if not DeltaTable.is_deltatable(path):
            return None
        table = DeltaTable(path)
        log = DeltaLog(
            table_id=str(table.metadata().id),
            version=table.version(),
            commits=_commits(table.history(None if deep else RECENT)),
            has_files=bool(table.file_uris()),
            properties=dict(table.metadata().configuration),
            spent={app: table.transaction_version(app) or 0 for app in app_ids},
            partitions=tuple(table.metadata().partition_columns),
            columns=tuple(field.name for field in table.schema().fields),
        )
        if not deep and len(log.commits) == RECENT and not any(c.head for c in log.current()):
            log = replace(log, commits=_commits(table.history()))
        return log
    except TableNotFoundError:
        return None
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


def _head(metadata: object) -> Head | None:
    """Other tools write their own metadata: what is not ours is no head."""
    if not isinstance(metadata, str) or '"floodmark"' not in metadata:
        return None
    try:
        return Head.from_dict(json.loads(metadata))
    except (json.JSONDecodeError, ValidationError):
        return None
