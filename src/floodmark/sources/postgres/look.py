"""How a look on Postgres is fenced: which server is asked, what it may list, and what speaks against the proof."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from floodmark.errors import SourceError
from floodmark.model.ledger import PendingLook
from floodmark.model.plan import Guarantee
from floodmark.model.position import Position
from floodmark.ports import LookRequest
from floodmark.sources.bound import Top
from floodmark.sources.fence import OFF, STEP, Caveat, Fence
from floodmark.sources.postgres.fence import Rows, holders, open_transactions, unseen
from floodmark.sources.postgres.server import Origins, PostgresServer, ask, origins, sequence_caveats
from floodmark.sources.relation import Relation


@dataclass(frozen=True)
class PostgresLook:
    """`here` is where rows are read, `there` where they are written: a replica's primary, or None for the same."""

    relation: Relation
    here: Rows
    there: Rows | None
    own_pid: int
    """As the driver knows it; a proxy tells another one than the server."""

    def fenced(self, request: LookRequest) -> Fenced:
        reader = ask(self.here)
        writer = reader if self.there is None else ask(self.there)
        if self.there is not None and writer.identity.partition("/")[0] != reader.identity.partition("/")[0]:
            raise SourceError("`fence_url` leads to another database cluster than the one that is read")
        if request.fence == "off":
            return Fenced(writer, Fence(None, (OFF,)))
        if writer.in_recovery:
            where = "fence_url leads to a replica" if self.there is not None else "this is a replica"
            why = f"{where}, where open transactions of the primary can't be seen"
            return Fenced(writer, Fence(None, (Caveat(why, "set `fence_url` to the primary's address"),)))
        rows = self.there or self.here
        found = origins(rows, self.relation.sql, self.relation.table)
        if found.replicated:
            return Fenced(writer, Fence(None, tuple(found.caveats)))
        fence = self._fence(request, rows, writer, found)
        return Fenced(writer, fence, None if self.there is None else Replay(self.here, self.there))

    def _fence(self, request: LookRequest, rows: Rows, server: PostgresServer, found: Origins) -> Fence:
        caveats = [*found.caveats, *self._proxied(server)]
        if request.cursor.leading.kind == "timestamp":
            caveats += [*_zone_caveats(request), *unseen(open_transactions(rows), server.role)]
            return Fence(partial(open_transactions, rows), tuple(caveats))
        caveats += sequence_caveats(rows, found.tables, request.cursor, request.fence)
        if request.fence == "transactions":
            return Fence(partial(open_transactions, rows), tuple(caveats))
        return Fence(partial(holders, rows, found.tables), tuple(caveats))

    def _proxied(self, server: PostgresServer) -> Iterator[Caveat]:
        if self.there is None and server.pid != self.own_pid:
            yield Caveat("a proxy stands before the server", "set `fence_url` to the server's own address")


@dataclass(frozen=True)
class Replay:
    """A replica shows what the primary's writers left behind only once it has replayed their commits."""

    replica: Rows
    primary: Rows

    def reached(self, wait: timedelta) -> bool:
        end = self.primary("SELECT pg_current_wal_insert_lsn()::text")[0][0]
        ends = time.monotonic() + wait.total_seconds()
        while not self.replica("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", end)[0][0]:
            if time.monotonic() >= ends:
                return False
            time.sleep(STEP)
        return True


@dataclass(frozen=True)
class Fenced:
    server: PostgresServer
    fence: Fence
    replay: Replay | None = None

    def bound(self, request: LookRequest, top: Top) -> tuple[Position | None, PendingLook | None]:
        limit, pending = self.fence.bound(request, self.server.clock, top)
        if self.replay is None or limit is None or limit == request.after or self.replay.reached(request.wait):
            return limit, pending
        # Proven on the primary, not yet seen here: the next look has nobody left to wait for but the replica.
        return request.after, PendingLook(bound=limit, taken_at=self.server.clock)

    def guarantee(self, request: LookRequest) -> Guarantee:
        return self.fence.guarantee(request.delay)


def _zone_caveats(request: LookRequest) -> Iterator[Caveat]:
    cursor = request.cursor
    if not cursor.leading.zoned and cursor.timezone is None:
        yield Caveat(
            f'"{cursor.leading.name}" has no time zone, so what its values mean hangs on each writer\'s session',
            "set `timezone:` if all of them write in one zone, or make the column timestamptz",
        )
