"""The lab with a Postgres database at the other end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from tests.lab import Lab


@dataclass
class WarehouseLab(Lab):
    warehouse: str = ""
    """Its URL; the source may live in the same database."""

    def __post_init__(self) -> None:
        self.lake = f'{{type: postgres, url: "{self.warehouse}"}}'
        super().__post_init__()

    def write(self, *, mode: str = "upsert", **declared: Any) -> Any:
        keys = ", keys: [id]" if mode == "upsert" else ""
        declared.setdefault("target", f"{{connection: lake, table: copies, mode: {mode}{keys}}}")
        return super().write(mode=mode, **declared)

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.warehouse, autocommit=True) as db:
            db.execute("SET timezone = 'UTC'")
            found = db.execute(statement.encode())
            return found.fetchall() if found.description else []

    def target_rows(self) -> list[tuple[Any, ...]]:
        shown = "to_char(updated_at, 'YYYY-MM-DD HH24:MI:SS.US')"
        return sorted(self.ask(f"SELECT id, val, {shown} FROM copies"))

    def leftovers(self) -> list[str]:
        return [name for (name,) in self.ask("SELECT tablename FROM pg_tables WHERE tablename LIKE 'floodmark_stage%'")]
