"""State in a SQL database: the default, as a SQLite file; Postgres, MySQL or MariaDB for a team."""

from __future__ import annotations

from datetime import UTC, timedelta
from pathlib import Path

from floodmark.errors import LeaseHeld, LeaseLost, StateError
from floodmark.model.lease import Lease, Owner
from floodmark.model.ledger import PipelineState
from floodmark.model.outcome import RunRecord
from floodmark.state.database import Database
from floodmark.state.form import from_text, to_form, to_record, to_state, to_text
from floodmark.state.rules import conflict, fence, next_beat, next_lease
from floodmark.state.statements import Statements, Taken
from floodmark.state.tables import LONGEST_NAME

KEPT_RUNS = 1000
"""Per pipeline."""

NEW_STATE = "INSERT INTO floodmark_pipelines (name, revision, body) VALUES (?, ?, ?)"
NEXT_STATE = "UPDATE floodmark_pipelines SET revision = ?, body = ? WHERE name = ? AND revision = ?"
LEASE = "SELECT epoch, beat, released, owner FROM floodmark_leases WHERE resource = ?"
NEW_LEASE = "INSERT INTO floodmark_leases (epoch, beat, released, owner, resource) VALUES (?, ?, ?, ?, ?)"
NEXT_LEASE = "UPDATE floodmark_leases SET epoch = ?, beat = ?, released = ?, owner = ? WHERE resource = ?"
OLD_RUN = "SELECT id FROM floodmark_runs WHERE pipeline = ? ORDER BY id DESC LIMIT 1 OFFSET ?"


class SqlStore:
    """One row per pipeline, lease and run. Safe for several processes and threads.

    Compare-and-swap needs no trust in isolation levels: a lease is read under its row lock, a state changes by an
    UPDATE that names the revision, and what is not there yet is guarded by its primary key."""

    def __init__(self, url: str | Path, *, wait: timedelta = timedelta(seconds=30)) -> None:
        self._database = Database(url, wait)
        self._where = self._database.where

    def get(self, pipeline: str) -> PipelineState | None:
        query = "SELECT body FROM floodmark_pipelines WHERE name = ?"
        body = self._database.read(lambda db: db.value(query, db.name(pipeline)))
        return None if body is None else to_state(from_text(body, self._where), self._where)

    def save(self, state: PipelineState, lease: Lease | None = None) -> PipelineState:
        saved = state.but(revision=state.revision + 1)
        name, body = _fitting(state.pipeline), to_text(to_form(saved))

        def work(db: Statements) -> PipelineState:
            if lease is not None:
                fence(self._lease(db, lease.resource), lease)
            self._database.stamp(db)
            if state.revision == 0:
                try:
                    db.add(NEW_STATE, db.name(name), saved.revision, body)
                except Taken as error:
                    raise conflict(state) from error
            elif db.change(NEXT_STATE, saved.revision, body, db.name(name), state.revision) != 1:
                raise conflict(state)
            return saved

        return self._database.write(work)

    def delete(self, pipeline: str) -> bool:
        """The history of its runs stays."""
        mine = "DELETE FROM floodmark_pipelines WHERE name = ?"
        return self._database.write(lambda db: db.change(mine, db.name(pipeline)) > 0)

    def list_pipelines(self) -> list[str]:
        found = self._database.read(lambda db: db.rows("SELECT name FROM floodmark_pipelines"))
        return sorted(_text(name) for (name,) in found)

    def acquire(self, resource: str, owner: Owner, expected: Lease | None = None) -> Lease:
        _fitting(resource)

        def work(db: Statements) -> Lease:
            current = self._lease(db, resource)
            return self._put(db, current, next_lease(current, resource, owner, expected))

        return self._database.write(work)

    def holder(self, resource: str) -> Lease | None:
        lease = self._database.read(lambda db: self._lease(db, resource, lock=False))
        return None if lease is None or lease.released else lease

    def beat(self, lease: Lease) -> Lease:
        def work(db: Statements) -> Lease:
            current = self._lease(db, lease.resource)
            return self._put(db, current, next_beat(current, lease))

        return self._database.write(work)

    def release(self, lease: Lease) -> None:
        def work(db: Statements) -> None:
            try:
                current = fence(self._lease(db, lease.resource), lease)
            except LeaseLost:
                return
            self._put(db, current, current.but(released=True))

        self._database.write(work)

    def record_run(self, record: RunRecord) -> None:
        name, started_at = _fitting(record.pipeline), record.started_at.astimezone(UTC).isoformat()
        body = to_text(to_form(record))

        def work(db: Statements) -> None:
            mine = db.name(name)
            db.change(
                "INSERT INTO floodmark_runs (pipeline, started_at, body) VALUES (?, ?, ?)", mine, started_at, body
            )
            # Two statements, since MySQL does not delete from what it is selecting; the index makes this one cheap.
            last = db.value(OLD_RUN, mine, KEPT_RUNS)
            if last is not None:
                db.change("DELETE FROM floodmark_runs WHERE pipeline = ? AND id <= ?", mine, last)

        self._database.write(work)

    def runs(self, pipeline: str, limit: int = 20) -> list[RunRecord]:
        """In the order they were recorded: nobody's clock is trusted."""
        newest = "SELECT body FROM floodmark_runs WHERE pipeline = ? ORDER BY id DESC LIMIT ?"
        found = self._database.read(lambda db: db.rows(newest, db.name(pipeline), limit))
        return [to_record(RunRecord, from_text(body, self._where), self._where) for (body,) in found]

    def close(self) -> None:
        self._database.close()

    def _lease(self, db: Statements, resource: str, *, lock: bool = True) -> Lease | None:
        row = db.row(LEASE, db.name(resource), lock=lock)
        if row is None:
            return None
        epoch, beat, released, owner = row
        form = {"resource": resource, "epoch": epoch, "beat": beat, "released": bool(released)}
        return to_record(Lease, {**form, "owner": from_text(owner, self._where)}, self._where)

    def _put(self, db: Statements, current: Lease | None, lease: Lease) -> Lease:
        row = (lease.epoch, lease.beat, lease.released, to_text(to_form(lease.owner)), db.name(lease.resource))
        if current is not None:
            db.change(NEXT_LEASE, *row)
            return lease
        try:
            db.add(NEW_LEASE, *row)
        except Taken as error:
            raise LeaseHeld(f"somebody else has just taken the lease on {lease.resource}") from error
        return lease


def _text(name: str | bytes) -> str:
    """Where names are kept as bytes, that is how they come back."""
    return name.decode() if isinstance(name, bytes) else name


def _fitting(name: str) -> str:
    """Checked here, since each database has another answer to what is too long or holds a NUL."""
    if len(name) > LONGEST_NAME or "\x00" in name:
        raise StateError(
            f"{name[:60]!r}… is too long to be a name in the state store: at most {LONGEST_NAME} characters"
            if len(name) > LONGEST_NAME
            else f"{name!r} holds a NUL character, which no database stores",
            hint="choose a shorter pipeline name or target path",
        )
    return name
