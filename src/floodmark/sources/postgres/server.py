"""What a Postgres says of itself and of a relation's origins, which decides how much a look can prove."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from floodmark.model.ledger import ServerSeen
from floodmark.model.table import Cursor
from floodmark.sources.fence import Caveat
from floodmark.sources.postgres.fence import Rows

_SERVER = """
SELECT clock_timestamp(), pg_is_in_recovery(), pg_backend_pid(), current_user::text,
       CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0'::pg_lsn
"""

_IDENTITY = """
SELECT (SELECT system_identifier FROM pg_control_system()) || '/' ||
       CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint())::text
            ELSE ltrim(left(pg_walfile_name(pg_current_wal_lsn()), 8), '0') END
"""

# Up and down: rows may go straight into a partition, or come through a parent.
_FAMILY = """
WITH RECURSIVE up AS (
  SELECT unnest(%s::oid[]) AS oid UNION SELECT i.inhparent FROM pg_inherits i JOIN up ON i.inhrelid = up.oid
), family AS (
  SELECT oid FROM up UNION SELECT i.inhrelid FROM pg_inherits i JOIN family ON i.inhparent = family.oid
)
SELECT c.oid::bigint, c.relkind::text, c.oid::regclass::text,
       EXISTS (SELECT FROM pg_subscription_rel s WHERE s.srrelid = c.oid)
FROM family JOIN pg_class c ON c.oid = family.oid
"""

_SEQUENCES = """
SELECT q.seqrelid::regclass::text, q.seqcache > 1, q.seqcycle OR q.seqincrement < 0
FROM pg_attribute a
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
JOIN pg_depend p ON
  (p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid AND p.refclassid = 'pg_class'::regclass) OR
  (p.refclassid = 'pg_class'::regclass AND p.refobjid = a.attrelid AND p.refobjsubid = a.attnum
   AND p.classid = 'pg_class'::regclass AND p.deptype = 'i')
JOIN pg_sequence q ON q.seqrelid IN (p.objid, p.refobjid)
WHERE a.attrelid = ANY(%s::oid[]) AND a.attname = %s
"""
"""Those that a column's default or identity takes its values from."""


@dataclass(frozen=True)
class PostgresServer:
    clock: datetime
    in_recovery: bool
    pid: int
    role: str
    log: int
    identity: str

    @property
    def seen(self) -> ServerSeen:
        return ServerSeen(identity=self.identity, log=self.log, clock=self.clock)


@dataclass(frozen=True)
class Origins:
    """The tables behind a relation, each with its whole partition tree."""

    tables: list[int]
    kinds: dict[str, str]
    replicated: list[str]

    @property
    def caveats(self) -> Iterator[Caveat]:
        if not self.tables:
            yield Caveat("no table can be found behind the query, so who writes to it is not known")
        for name in self.replicated:
            yield Caveat(f"{name} is fed by logical replication, whose rows keep the times of another server")
        for name, kind in self.kinds.items():
            if kind == "m":
                yield Caveat(f"{name} is a materialized view, whose rows appear when it is refreshed")
            if kind == "f":
                yield Caveat(f"{name} is a foreign table, whose writers can't be seen from here")


def ask(rows: Rows) -> PostgresServer:
    clock, in_recovery, pid, role, log = rows(_SERVER)[0]
    identity = rows(_IDENTITY)[0][0]
    return PostgresServer(clock.astimezone(UTC), in_recovery, pid, role, int(log), identity)


def origins(rows: Rows, relation: str, table: str | None) -> Origins:
    """For a view or a query the planner says which tables it reads."""
    family = [] if table is None else rows(_FAMILY, [_oid(rows, table)])
    if table is None or any(kind == "v" for _, kind, _, _ in family):
        plan = rows(f"EXPLAIN (VERBOSE, FORMAT JSON) SELECT * FROM {relation}")[0][0]
        found = set(_relations(json.loads(plan) if isinstance(plan, str) else plan))
        quoted = [f"{_ident(schema)}.{_ident(name)}" for schema, name in sorted(found)]
        family = rows(_FAMILY, [_oid(rows, name) for name in quoted])
    return Origins(
        [oid for oid, _, _, _ in family],
        {name: kind for _, kind, name, _ in family},
        [name for _, _, name, fed in family if fed],
    )


def _oid(rows: Rows, name: str) -> int:
    return int(rows("SELECT to_regclass(%s)::oid::bigint", name)[0][0])


def sequence_caveats(rows: Rows, tables: list[int], cursor: Cursor, fence: str) -> Iterator[Caveat]:
    found = rows(_SEQUENCES, tables, cursor.leading.name)
    for name, cached, odd in found:
        if cached:
            yield Caveat(
                f"sequence {name} hands out values in blocks (CACHE), so a session may write lower ones later",
                f"ALTER SEQUENCE {name} CACHE 1;",
            )
        elif odd:
            yield Caveat(f"sequence {name} does not only grow")
    if not found and fence == "auto":
        yield Caveat(
            f'"{cursor.leading.name}" has no sequence as its default, so who fills it and when is not known',
            "fence: table where it is filled by a trigger; fence: transactions where each transaction takes its "
            "values by itself",
        )


def _relations(node: Any) -> Iterator[tuple[str, str]]:
    if isinstance(node, list):
        for part in node:
            yield from _relations(part)
    elif isinstance(node, dict):
        if "Relation Name" in node:
            yield node.get("Schema", "public"), node["Relation Name"]
        for part in node.values():
            if isinstance(part, list | dict):
                yield from _relations(part)


def _ident(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
