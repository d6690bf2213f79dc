"""State in a SQL database: the default, as a SQLite file; Postgres, MySQL or MariaDB for a team."""

from __future__ import annotations

from datetime import UTC, timedelta
from pathlib import Path

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from floodmark.errors import LeaseHeld, LeaseLost, StateError
from floodmark.model.lease import Lease, Owner
from floodmark.model.ledger import PipelineState
from floodmark.model.outcome import RunRecord
from floodmark.state.database import Database
from floodmark.state.form import from_text, to_form, to_record, to_state, to_text
from floodmark.state.rules import conflict, fence, next_beat, next_lease
from floodmark.state.tables import LEASES, LONGEST_NAME, PIPELINES, RUNS

KEPT_RUNS = 1000
"""Per pipeline."""


class SqlStore:
    """One row per pipeline, lease and run. Safe for several processes and threads.

    Compare-and-swap needs no trust in isolation levels: a lease is read under its row lock, a state changes by an
    UPDATE that names the revision, and what is not there yet is guarded by its primary key."""

    def __init__(self, url: str | Path, *, wait: timedelta = timedelta(seconds=30)) -> None:
        self._database = Database(url, wait)
        self._where = self._database.where

    def get(self, pipeline: str) -> PipelineState | None:
        query = select(PIPELINES.c.body).where(PIPELINES.c.name == pipeline)
        body = self._database.read(lambda connection: connection.scalar(query))
        return None if body is None else to_state(from_text(body, self._where), self._where)

    def save(self, state: PipelineState, lease: Lease | None = None) -> PipelineState:
        saved = state.but(revision=state.revision + 1)
        row = {"revision": saved.revision, "body": to_text(to_form(saved))}
        same = (PIPELINES.c.name == _fitting(state.pipeline)) & (PIPELINES.c.revision == state.revision)

        def work(connection: Connection) -> PipelineState:
            if lease is not None:
                fence(self._lease(connection, lease.resource), lease)
            self._database.stamp(connection)
            if state.revision == 0:
                try:
                    connection.execute(insert(PIPELINES).values(name=state.pipeline, **row))
                except IntegrityError as error:
                    raise conflict(state) from error
            elif connection.execute(update(PIPELINES).where(same).values(**row)).rowcount != 1:
                raise conflict(state)
            return saved

        return self._database.write(work)

    def delete(self, pipeline: str) -> bool:
        """The history of its runs stays."""
        mine = delete(PIPELINES).where(PIPELINES.c.name == pipeline)
        return self._database.write(lambda connection: connection.execute(mine).rowcount > 0)

    def list_pipelines(self) -> list[str]:
        return sorted(self._database.read(lambda connection: connection.scalars(select(PIPELINES.c.name)).all()))

    def acquire(self, resource: str, owner: Owner, expected: Lease | None = None) -> Lease:
        _fitting(resource)

        def work(connection: Connection) -> Lease:
            current = self._lease(connection, resource)
            return self._put(connection, current, next_lease(current, resource, owner, expected))

        return self._database.write(work)

    def holder(self, resource: str) -> Lease | None:
        lease = self._database.read(lambda connection: self._lease(connection, resource, lock=False))
        return None if lease is None or lease.released else lease

    def beat(self, lease: Lease) -> Lease:
        def work(connection: Connection) -> Lease:
            current = self._lease(connection, lease.resource)
            return self._put(connection, current, next_beat(current, lease))

        return self._database.write(work)

    def release(self, lease: Lease) -> None:
        def work(connection: Connection) -> None:
            try:
                current = fence(self._lease(connection, lease.resource), lease)
            except LeaseLost:
                return
            self._put(connection, current, current.but(released=True))

        self._database.write(work)

    def record_run(self, record: RunRecord) -> None:
        started_at = record.started_at.astimezone(UTC).isoformat()
        row = {"pipeline": _fitting(record.pipeline), "started_at": started_at, "body": to_text(to_form(record))}
        mine = RUNS.c.pipeline == record.pipeline
        # Two statements, since MySQL does not delete from what it is selecting; the index makes the first one cheap.
        oldest = select(RUNS.c.id).where(mine).order_by(RUNS.c.id.desc()).offset(KEPT_RUNS).limit(1)

        def work(connection: Connection) -> None:
            connection.execute(insert(RUNS).values(**row))
            last = connection.scalar(oldest)
            if last is not None:
                connection.execute(delete(RUNS).where(mine & (RUNS.c.id <= last)))

        self._database.write(work)

    def runs(self, pipeline: str, limit: int = 20) -> list[RunRecord]:
        """In the order they were recorded: nobody's clock is trusted."""
        newest = select(RUNS.c.body).where(RUNS.c.pipeline == pipeline).order_by(RUNS.c.id.desc()).limit(limit)
        bodies = self._database.read(lambda connection: connection.scalars(newest).all())
        return [to_record(RunRecord, from_text(body, self._where), self._where) for body in bodies]

    def close(self) -> None:
        self._database.close()

    def _lease(self, connection: Connection, resource: str, *, lock: bool = True) -> Lease | None:
        query = select(LEASES).where(LEASES.c.resource == resource)
        row = connection.execute(query.with_for_update() if lock else query).mappings().first()
        if row is None:
            return None
        return to_record(Lease, {**row, "owner": from_text(row["owner"], self._where)}, self._where)

    def _put(self, connection: Connection, current: Lease | None, lease: Lease) -> Lease:
        row = {**to_form(lease), "owner": to_text(to_form(lease.owner))}
        if current is not None:
            connection.execute(update(LEASES).where(LEASES.c.resource == lease.resource).values(**row))
            return lease
        try:
            connection.execute(insert(LEASES).values(**row))
        except IntegrityError as error:
            raise LeaseHeld(f"somebody else has just taken the lease on {lease.resource}") from error
        return lease


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
