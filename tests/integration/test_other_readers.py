"""What is written to Delta, read by somebody who is not Spark. Iceberg's labs read by PyIceberg, those of databases by
their own clients, and the page on Parquet by DuckDB and PyArrow."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable, QueryBuilder
from tests.lab import Lab, ok


@pytest.mark.parametrize("mode", ["upsert", "history"])
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_deltalake_reads_what_was_updated(sqlite_lab: Lab, mode: str, vectors: str) -> None:
    sqlite_lab.fill(20)
    target = f"{{connection: lake, table: orders, mode: {mode}, keys: [id], deletion_vectors: {vectors}}}"
    project = sqlite_lab.project(target=target)
    ok(project.run("orders"))
    sqlite_lab.execute("UPDATE orders SET val = 'changed', updated_at = '2026-01-02 10:00:00' WHERE id <= 5")
    ok(project.run("orders"))
    table = DeltaTable(sqlite_lab.table)
    now = "WHERE is_current" if mode == "history" else ""
    wanted = [row[:2] for row in sqlite_lab.source_rows()]
    asked = QueryBuilder().register("t", table).execute(f"SELECT id, val FROM t {now} ORDER BY id").read_all()
    assert list(zip(*(asked.column(name).to_pylist() for name in ("id", "val")), strict=True)) == wanted
    if vectors == "false":
        rows = table.to_pyarrow_table().to_pylist()
        assert sorted((r["id"], r["val"]) for r in rows if r.get("is_current", True)) == wanted
