"""The lab with a database server at the other end, of the source's own kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from tests.lab import Lab

SHOWN = {
    "postgres": "to_char(updated_at, 'YYYY-MM-DD HH24:MI:SS.US')",
    "mariadb": "date_format(updated_at, '%Y-%m-%d %H:%i:%s.%f')",
}
TABLES = {
    "postgres": "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
    "mariadb": "SELECT table_name FROM information_schema.tables WHERE table_schema = database()",
}


@dataclass
class WarehouseLab(Lab):
    warehouse: str = ""
    """Its URL; the source may live in the same database."""

    def __post_init__(self) -> None:
        self.lake = f'{{type: {self.kind}, url: "{self.warehouse}"}}'
        super().__post_init__()

    def write(self, *, mode: str = "upsert", **declared: Any) -> Any:
        keys = ", keys: [id]" if mode == "upsert" else ""
        declared.setdefault("target", f"{{connection: lake, table: copies, mode: {mode}{keys}}}")
        return super().write(mode=mode, **declared)

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        if self.kind == "mariadb":
            with self.mariadb() as my, my.cursor() as cursor:
                cursor.execute(statement)
                return list(cursor.fetchall())
        with psycopg.connect(self.warehouse, autocommit=True) as db:
            db.execute("SET timezone = 'UTC'")
            found = db.execute(statement.encode())
            return found.fetchall() if found.description else []

    def target_rows(self) -> list[tuple[Any, ...]]:
        return sorted(self.ask(f"SELECT id, val, {SHOWN[self.kind]} FROM copies"))

    def leftovers(self) -> list[str]:
        return [name for (name,) in self.ask(TABLES[self.kind]) if name.startswith("floodmark_stage")]
