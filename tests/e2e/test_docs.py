"""What the docs show works: each example runs as it stands, each option page says what the classes say."""

from __future__ import annotations

import re
import runpy
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import pytest
from tests.h2 import H2Shop
from tests.iceberg import IcebergLab
from tests.lab import Kind, Lab, ok
from tests.lake import LakeShop
from tests.warehouse import WarehouseLab

from floodmark.opening import declare, load, validate
from floodmark.sources.mysql.types import listed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("sources", "changes", "modes", "targets", "shaping", "state")
OWN_TESTS = (
    "sources/delta",
    "sources/iceberg",
    "sources/jdbc",
    "targets/duckdb",
    "targets/iceberg",
    "targets/mysql",
    "targets/parquet",
    "targets/postgres",
    "targets/sqlite",
)
PAGES = sorted(
    page
    for folder in FOLDERS
    for page in (ROOT / "docs" / folder).glob("*.md")
    if f"{folder}/{page.stem}" not in OWN_TESTS
)
PAGES += [ROOT / "docs" / name for name in ("spark.md", "care.md")]

STATES = {"postgres": "pg_db", "mysql": "my_db", "bucket": "s3_bucket"}
"""The page of a store to the fixture that has its server."""


def example(page: Path) -> str:
    return str(re.findall(r"```yaml\n(.*?)```", page.read_text(), re.S)[0])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_the_example_of_a_page_runs(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = example(page)
    spark = request.getfixturevalue("spark")
    kind: Kind = "postgres" if "type: postgres" in text else "mariadb" if "type: mysql" in text else "sqlite"
    database = {"postgres": "pg_db", "mariadb": "my_db"}.get(kind)
    url = request.getfixturevalue(database) if database else ""
    lab = Lab(tmp_path / "project", kind, url, spark)
    lab.fill(3)
    monkeypatch.setenv("SHOP_URL", url)
    monkeypatch.setenv("THE_SALT", "pepper")
    if page.parent.name == "state" and page.stem in STATES:
        place = request.getfixturevalue(STATES[page.stem])
        monkeypatch.setenv("STATE_URL", f"{place}/state.json" if page.stem == "bucket" else place)
    path = lab.root / "floodmark.yml"
    path.write_text(text)
    project = load(path, spark=spark)
    for name in project.names():
        ok(project.run(name))
    if page.stem == "columns":
        assert sorted(lab.target_columns()) == ["order_id", "updated_at", "val"]
    else:
        lab.assert_equal()
    project.close()


def test_the_table_that_the_examples_are_tried_on(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    (script,) = re.findall(r"\$ python - <<'END'\n(.*?)END\n", index, re.S)
    monkeypatch.chdir(tmp_path)
    Path("make.py").write_text(script)
    runpy.run_path("make.py")
    Path("floodmark.yml").write_text(example(ROOT / "docs" / "targets" / "delta.md"))
    assert ok(load("floodmark.yml", spark=spark).run("orders")).rows.inserted == 2


def test_the_example_of_the_jdbc_page_runs(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = H2Shop(tmp_path, spark)
    shop.fill(1, 3)
    monkeypatch.setenv("SHOP_URL", shop.url)
    path = tmp_path / "floodmark.yml"
    path.write_text(example(ROOT / "docs" / "sources" / "jdbc.md"))
    assert ok(load(path, spark=spark).run("orders")).rows.inserted == 3
    assert [row[0] for row in shop.target()] == [1, 2, 3]


@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_the_example_of_a_page_on_a_lake_as_a_source_runs(
    lake: Literal["delta", "iceberg"], tmp_path: Path, spark: SparkSession
) -> None:
    shop = LakeShop(tmp_path, spark, lake, folder="bronze", namespace="shop")
    shop.create()
    shop.fill(3)
    path = tmp_path / "floodmark.yml"
    path.write_text(example(ROOT / "docs" / "sources" / f"{lake}.md"))
    assert ok(load(path, spark=spark).run("orders")).rows.inserted == 3


@pytest.mark.parametrize(("page", "database"), [("postgres", "pg_db"), ("mysql", "my_db")])
def test_the_example_of_a_page_on_a_database_as_a_target_runs(
    page: str, database: str, sqlite_lab: Lab, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = request.getfixturevalue(database)
    kind: Kind = "postgres" if page == "postgres" else "mariadb"
    warehouse = WarehouseLab(sqlite_lab.root / "warehouse", kind, url, warehouse=url)
    sqlite_lab.fill(3)
    monkeypatch.setenv("WAREHOUSE_URL", url)
    path = sqlite_lab.root / "floodmark.yml"
    path.write_text(example(ROOT / "docs" / "targets" / f"{page}.md"))
    assert ok(load(path, spark=sqlite_lab.spark).run("orders")).rows.inserted == 3
    assert [row[:2] for row in warehouse.target_rows()] == [(1, "v1"), (2, "v2"), (3, "v3")]


def test_the_example_of_the_page_on_iceberg_runs(tmp_path: Path, spark: SparkSession) -> None:
    lab = IcebergLab(tmp_path / "project", "sqlite", "", spark)
    lab.fill(3)
    path = lab.root / "floodmark.yml"
    path.write_text(example(ROOT / "docs" / "targets" / "iceberg.md"))
    assert ok(load(path, spark=spark).run("orders")).rows.inserted == 3
    lab.assert_equal()


def test_the_example_of_the_page_on_sqlite_as_a_target_runs(sqlite_lab: Lab) -> None:
    sqlite_lab.fill(3)
    path = sqlite_lab.root / "floodmark.yml"
    path.write_text(example(ROOT / "docs" / "targets" / "sqlite.md"))
    assert ok(load(path, spark=sqlite_lab.spark).run("orders")).rows.inserted == 3
    with closing(sqlite3.connect(sqlite_lab.root / "warehouse.db")) as db:
        assert db.execute("SELECT id, val FROM orders ORDER BY id").fetchall() == [(1, "v1"), (2, "v2"), (3, "v3")]


def test_the_example_of_the_page_on_duckdb_as_a_target_runs(sqlite_lab: Lab) -> None:
    sqlite_lab.fill(3)
    path = sqlite_lab.root / "floodmark.yml"
    path.write_text(example(ROOT / "docs" / "targets" / "duckdb.md"))
    assert ok(load(path, spark=sqlite_lab.spark).run("orders")).rows.inserted == 3
    with duckdb.connect(sqlite_lab.root / "warehouse.duckdb", read_only=True) as db:
        assert db.execute("SELECT id, val FROM orders ORDER BY id").fetchall() == [(1, "v1"), (2, "v2"), (3, "v3")]


def test_the_examples_of_the_page_on_parquet_files_run(sqlite_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs" / "targets" / "parquet.md"
    sqlite_lab.fill(3)
    path = sqlite_lab.root / "floodmark.yml"
    path.write_text(example(page))
    assert ok(load(path, spark=sqlite_lab.spark).run("orders")).rows.inserted == 3
    monkeypatch.chdir(sqlite_lab.root)
    read: dict[str, Any] = {"spark": sqlite_lab.spark}
    exec(re.findall(r"```python\n(.*?)```", page.read_text(), re.S)[0], read)  # noqa: S102
    assert [read["in_duckdb"], read["in_arrow"], read["in_spark"]] == [3, 3, 3]


def test_the_mysql_page_lists_the_types_as_they_are() -> None:
    rows = [f"| {name} | {spark} | {note} |".replace("|  |", "| |") for name, spark, note in listed()]
    assert "\n".join(rows) in (ROOT / "docs" / "sources" / "mysql.md").read_text()


def test_the_readme_example_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "floodmark.yml"
    path.write_text(re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[0])
    monkeypatch.setenv("SHOP_URL", "postgresql://user:password@host/shop")
    spec = validate(path)
    assert list(spec.pipelines) == ["orders", "events"]


def test_a_project_declared_in_python_is_the_same_spec(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.S)
    declared = next(b for b in blocks if "floodmark.declare(" in b)
    mapping = eval(re.search(r"declare\(\s*(\{.*\}),\s*root=", declared, re.S)[1])  # type: ignore[index]  # noqa: S307
    path = tmp_path / "floodmark.yml"
    path.write_text(example(ROOT / "docs" / "sources" / "sqlite.md"))
    ours, theirs = declare(mapping, root=tmp_path).spec, validate(path)
    assert ours.model_dump() == theirs.model_dump()


def test_the_options_page_is_what_the_classes_say() -> None:
    page = runpy.run_path(str(ROOT / "scripts" / "write_options.py"))["page"]()
    assert (ROOT / "docs" / "options.md").read_text() == page, "run: python scripts/write_options.py"


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name}: {link}"
