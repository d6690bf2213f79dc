"""Who may still write to a Postgres table, from its locks, its prepared transactions and its sessions.

For a timestamp every open transaction counts: now() is its start. Each one holds a lock on its virtual id, which any
role may see. A script of several transactions in one message takes its time from the message, not from the transaction:
such a session is followed by its query, where we may see it. For a sequence it is enough to know who holds the table's
RowExclusiveLock, which an INSERT takes before its default takes a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from floodmark.sources.fence import Caveat

Rows = Callable[..., list[tuple[Any, ...]]]

READER = (1718382436, 1918988402)
"""An advisory lock that our own readers hold for as long as they read: it tells them from writers. ("flod", "rdrr")"""

MARK_READER = f"SELECT pg_advisory_xact_lock_shared({READER[0]}, {READER[1]})"

_OURS = f"""
ours AS MATERIALIZED (
  SELECT pid, virtualtransaction FROM pg_locks
  WHERE locktype = 'advisory' AND classid = {READER[0]} AND objid = {READER[1]} AND granted
)"""

# Sessions without a user are autovacuum's and the server's own: they write no rows. Those that send the log to replicas
# are at one query for ever.
_TRANSACTIONS = f"""
WITH {_OURS}, sessions AS MATERIALIZED (
  SELECT s.pid, s.state, s.query_start, s.datid, s.usesysid, s.query FROM pg_stat_activity s
  WHERE s.backend_type IS DISTINCT FROM 'walsender'
), here AS (
  SELECT oid FROM pg_database WHERE datname = current_database()
)
SELECT 'v' || l.virtualtransaction
FROM pg_locks l LEFT JOIN sessions s ON s.pid = l.pid
WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND l.granted AND l.pid <> pg_backend_pid()
  AND (s.pid IS NULL OR (s.usesysid IS NOT NULL AND coalesce(s.datid = (SELECT oid FROM here), true)))
  AND l.virtualtransaction NOT IN (SELECT virtualtransaction FROM ours)
UNION ALL
SELECT 'q' || s.pid || '@' || extract(epoch FROM s.query_start)
FROM sessions s
WHERE s.datid = (SELECT oid FROM here) AND s.pid <> pg_backend_pid() AND s.usesysid IS NOT NULL
  AND s.state IN ('active', 'fastpath function call') AND s.pid NOT IN (SELECT pid FROM ours)
UNION ALL
SELECT CASE WHEN s.state = 'disabled' THEN 'off' ELSE 'hidden' END
FROM sessions s
WHERE s.datid = (SELECT oid FROM here) AND s.pid <> pg_backend_pid() AND s.usesysid IS NOT NULL
  AND (s.state = 'disabled' OR s.query = '<insufficient privilege>') AND s.pid NOT IN (SELECT pid FROM ours)
"""

_PREPARED = "SELECT 'p' || transaction FROM pg_prepared_xacts WHERE database = current_database()"

_HOLDERS = """
SELECT DISTINCT CASE WHEN l.pid IS NULL THEN 'p' ELSE 'v' END || l.virtualtransaction
FROM pg_locks l
WHERE l.locktype = 'relation' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.relation = ANY(%s::oid[]) AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
  AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
"""


@dataclass(frozen=True)
class PostgresWriters:
    """A transaction that is prepared loses its virtual id, and nobody can say which one it was. So each prepared one
    that is open now may be one of the known."""

    writers: frozenset[str]
    hidden: int = 0
    """Sessions whose activity this role may not see."""
    untracked: int = 0
    """Sessions that don't publish their activity."""

    def left(self, known: frozenset[str]) -> frozenset[str]:
        return (known & self.writers) | {w for w in self.writers if w.startswith("p")}


def open_transactions(rows: Rows) -> PostgresWriters:
    """Prepared ones last: a transaction that is being prepared is then seen in one place or the other."""
    found = [name for (name,) in rows(_TRANSACTIONS)]
    prepared = [name for (name,) in rows(_PREPARED)]
    names = frozenset(found) - {"off", "hidden"}
    return PostgresWriters(names | frozenset(prepared), found.count("hidden"), found.count("off"))


def holders(rows: Rows, tables: list[int]) -> PostgresWriters:
    return PostgresWriters(frozenset(name for (name,) in rows(_HOLDERS, tables)))


def unseen(listing: PostgresWriters, role: str) -> list[Caveat]:
    """A script of several transactions can't be told from an idle session where its activity can't be seen."""
    why = "a script of several transactions in one message could be missed"
    if listing.untracked:
        return [Caveat(f"{_sessions(listing.untracked)} with track_activities off: {why}", "set track_activities = on")]
    if listing.hidden:
        fix = f"GRANT pg_read_all_stats TO {role};"
        return [Caveat(f"the activity of {_sessions(listing.hidden)} is hidden from this role: {why}", fix)]
    return []


def _sessions(count: int) -> str:
    return "1 session" if count == 1 else f"{count} sessions"
