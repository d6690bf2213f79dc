"""What Postgres knows beside a table's columns: how big it is, which tables there are, what a query returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

SIZE = """
SELECT c.relkind::text, coalesce((
  SELECT sum(CASE WHEN l.reltuples > 0 THEN l.reltuples ELSE pg_relation_size(l.oid) / 100 END)
  FROM pg_class l
  WHERE l.relkind IN ('r', 'm') AND (l.oid = c.oid OR l.oid IN (SELECT relid FROM pg_partition_tree(c.oid)))
), 0)::bigint
FROM pg_class c WHERE c.oid = to_regclass(%s)
"""
"""Kind and estimated rows. A table that was never analysed is judged by its size on disk."""

TABLES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname NOT LIKE 'pg\\_%'
  AND n.nspname <> 'information_schema' AND has_table_privilege(c.oid, 'SELECT')
ORDER BY 1, 2
"""
"""For wildcards: tables that may be read, a partitioned one as one table."""

SAMPLED = ("r", "m", "p")
"""Kinds of relation that TABLESAMPLE takes."""


def described(db: psycopg.Connection[Any], relation: str) -> tuple[list[str], list[int], list[int]]:
    """Names, types and type modifiers of what a relation returns, without running it."""
    cursor = db.execute(f"SELECT * FROM {relation} LIMIT 0".encode())
    columns, result = cursor.description or [], cursor.pgresult
    modifiers = [result.fmod(i) if result is not None else -1 for i in range(len(columns))]
    return [c.name for c in columns], [c.type_code for c in columns], modifiers
