"""State in one JSON document, a file or an object of a bucket: each change reads it whole and replaces it whole."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from floodmark.errors import LeaseLost
from floodmark.model import ledger
from floodmark.model.lease import Lease, Owner
from floodmark.model.ledger import PipelineState
from floodmark.model.outcome import RunRecord
from floodmark.state.form import (
    check_format,
    damaged,
    from_text,
    stored_revision,
    to_form,
    to_record,
    to_state,
    to_text,
)
from floodmark.state.rules import fence, next_beat, next_lease, next_state

T = TypeVar("T")

KEPT_RUNS = 200
"""Per pipeline. The whole document is written on each change, so it must stay small."""

PARTS = {"pipelines": dict, "leases": dict, "runs": list}
"""Each is a map by name, of these."""

STAMP = ',"write":"'
"""Before the last entry of the document. In a text that stands in a state its quotes would be escaped."""

Edit = Callable[[bytes | None], bytes | None]
"""From the content, None where there is none yet, to the new one; None leaves it as it is."""


class Container(Protocol):
    """Where the document lies."""

    @property
    def where(self) -> str:
        """For people."""

    def read(self) -> bytes | None: ...

    def change(self, edit: Edit) -> None:
        """Nobody else's change comes between what `edit` is given and what it returns. It may be called again when
        somebody was quicker; when it raises, nothing has changed."""


class DocumentStore:
    def __init__(self, place: Container, kept_runs: int | None = None) -> None:
        self._place = place
        self._where = place.where
        self._kept_runs = kept_runs

    def get(self, pipeline: str) -> PipelineState | None:
        form = self._contents(self._place.read())["pipelines"].get(pipeline)
        return None if form is None else to_state(form, self._where)

    def save(self, state: PipelineState, lease: Lease | None = None) -> PipelineState:
        def change(contents: dict[str, Any]) -> PipelineState:
            if lease is not None:
                fence(self._lease(contents, lease.resource), lease)
            saved = next_state(state, stored_revision(contents["pipelines"].get(state.pipeline), self._where))
            contents["pipelines"][state.pipeline] = to_form(saved)
            contents["format"] = ledger.FORMAT
            return saved

        return self._change(change)

    def delete(self, pipeline: str) -> bool:
        """The history of its runs stays."""
        return self._change(lambda contents: contents["pipelines"].pop(pipeline, None) is not None)

    def list_pipelines(self) -> list[str]:
        return sorted(self._contents(self._place.read())["pipelines"])

    def acquire(self, resource: str, owner: Owner, expected: Lease | None = None) -> Lease:
        def change(contents: dict[str, Any]) -> Lease:
            lease = next_lease(self._lease(contents, resource), resource, owner, expected)
            contents["leases"][resource] = to_form(lease)
            return lease

        return self._change(change)

    def holder(self, resource: str) -> Lease | None:
        lease = self._lease(self._contents(self._place.read()), resource)
        return None if lease is None or lease.released else lease

    def beat(self, lease: Lease) -> Lease:
        def change(contents: dict[str, Any]) -> Lease:
            beaten = next_beat(self._lease(contents, lease.resource), lease)
            contents["leases"][lease.resource] = to_form(beaten)
            return beaten

        return self._change(change)

    def release(self, lease: Lease) -> None:
        def change(contents: dict[str, Any]) -> None:
            try:
                current = fence(self._lease(contents, lease.resource), lease)
            except LeaseLost:
                return
            contents["leases"][lease.resource] = to_form(current.but(released=True))

        self._change(change)

    def record_run(self, record: RunRecord) -> None:
        def change(contents: dict[str, Any]) -> None:
            runs = contents["runs"].setdefault(record.pipeline, [])
            runs.append(to_form(record))
            del runs[: -(self._kept_runs or KEPT_RUNS)]

        self._change(change)

    def runs(self, pipeline: str, limit: int = 20) -> list[RunRecord]:
        forms = self._contents(self._place.read())["runs"].get(pipeline, [])
        return [to_record(RunRecord, form, self._where) for form in forms[::-1][:limit]]

    def close(self) -> None:
        """Nothing is kept open between two calls."""

    def _change(self, change: Callable[[dict[str, Any]], T]) -> T:
        results: list[T] = []

        def edit(content: bytes | None) -> bytes | None:
            contents = self._contents(content)
            before = (
                to_text(contents) if content is None else content.decode(errors="replace").partition(STAMP)[0] + "}"
            )
            results.append(change(contents))
            after = to_text(contents)
            if after == before:
                return None
            # No two writes are the same, so a writer whose answer got lost can tell its own from another's.
            return f'{after[:-1]}{STAMP}{uuid.uuid4().hex}"}}'.encode()

        self._place.change(edit)
        return results[-1]

    def _contents(self, content: bytes | None) -> dict[str, Any]:
        if content is None:
            return {"format": ledger.FORMAT, "pipelines": {}, "leases": {}, "runs": {}}
        contents = from_text(content, self._where)
        if not isinstance(contents, dict):
            raise damaged(self._where, "it does not hold a map")
        check_format(contents.get("format"), self._where)
        contents.pop("write", None)
        for part, kind in PARTS.items():
            entries = contents.get(part)
            if not isinstance(entries, dict) or not all(isinstance(entry, kind) for entry in entries.values()):
                raise damaged(self._where, f"{part!r} is missing or malformed")
        return contents

    def _lease(self, contents: dict[str, Any], resource: str) -> Lease | None:
        form = contents["leases"].get(resource)
        return None if form is None else to_record(Lease, form, self._where)
