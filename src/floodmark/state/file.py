"""State in one JSON file: for a single host, and to look at with any tool."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from floodmark.errors import LeaseLost
from floodmark.model.lease import Lease, Owner
from floodmark.model.ledger import FORMAT, PipelineState
from floodmark.model.outcome import RunRecord
from floodmark.state.form import check_format, damaged, from_text, to_form, to_record, to_state, to_text
from floodmark.state.locked import LockedFile
from floodmark.state.rules import fence, next_beat, next_lease, next_state

KEPT_RUNS = 200
"""Per pipeline. The whole file is written on each change, so it must stay small."""

PARTS = {"pipelines": dict, "leases": dict, "runs": list}
"""Each is a map by name, of these."""


class FileStore:
    """Every change reads the file, changes it and replaces it, under a lock that all processes of this host share."""

    def __init__(self, path: str | os.PathLike[str], *, wait: timedelta = timedelta(seconds=30)) -> None:
        self._file = LockedFile(path, wait)
        self._where = str(self._file.path)

    def get(self, pipeline: str) -> PipelineState | None:
        form = self._contents()["pipelines"].get(pipeline)
        return None if form is None else to_state(form, self._where)

    def save(self, state: PipelineState, lease: Lease | None = None) -> PipelineState:
        with self._changing() as contents:
            if lease is not None:
                fence(self._lease(contents, lease.resource), lease)
            form = contents["pipelines"].get(state.pipeline)
            stored = 0 if form is None else to_state(form, self._where).revision
            saved = next_state(state, stored)
            contents["pipelines"][state.pipeline] = to_form(saved)
        return saved

    def delete(self, pipeline: str) -> bool:
        """The history of its runs stays."""
        with self._changing() as contents:
            return contents["pipelines"].pop(pipeline, None) is not None

    def list_pipelines(self) -> list[str]:
        return sorted(self._contents()["pipelines"])

    def acquire(self, resource: str, owner: Owner, expected: Lease | None = None) -> Lease:
        with self._changing() as contents:
            lease = next_lease(self._lease(contents, resource), resource, owner, expected)
            contents["leases"][resource] = to_form(lease)
        return lease

    def holder(self, resource: str) -> Lease | None:
        lease = self._lease(self._contents(), resource)
        return None if lease is None or lease.released else lease

    def beat(self, lease: Lease) -> Lease:
        with self._changing() as contents:
            beaten = next_beat(self._lease(contents, lease.resource), lease)
            contents["leases"][lease.resource] = to_form(beaten)
        return beaten

    def release(self, lease: Lease) -> None:
        with self._changing() as contents:
            try:
                current = fence(self._lease(contents, lease.resource), lease)
            except LeaseLost:
                return
            contents["leases"][lease.resource] = to_form(current.but(released=True))

    def record_run(self, record: RunRecord) -> None:
        with self._changing() as contents:
            runs = contents["runs"].setdefault(record.pipeline, [])
            runs.append(to_form(record))
            del runs[:-KEPT_RUNS]

    def runs(self, pipeline: str, limit: int = 20) -> list[RunRecord]:
        forms = self._contents()["runs"].get(pipeline, [])
        return [to_record(RunRecord, form, self._where) for form in forms[::-1][:limit]]

    def close(self) -> None:
        """Nothing is kept open between two calls."""

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        with self._file.locked():
            contents = self._contents()
            before = to_text(contents)
            yield contents
            after = to_text(contents)
            if after != before:
                self._file.replace(after.encode())

    def _contents(self) -> dict[str, Any]:
        content = self._file.read()
        if content is None:
            return {"format": FORMAT, "pipelines": {}, "leases": {}, "runs": {}}
        contents = from_text(content, self._where)
        if not isinstance(contents, dict):
            raise damaged(self._where, "it does not hold a map")
        check_format(contents.get("format"), self._where)
        for part, kind in PARTS.items():
            entries = contents.get(part)
            if not isinstance(entries, dict) or not all(isinstance(entry, kind) for entry in entries.values()):
                raise damaged(self._where, f"{part!r} is missing or malformed")
        return contents

    def _lease(self, contents: dict[str, Any], resource: str) -> Lease | None:
        form = contents["leases"].get(resource)
        return None if form is None else to_record(Lease, form, self._where)
