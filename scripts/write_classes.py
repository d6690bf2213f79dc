"""Writes src/floodmark/spark/ahead/classes.gz: which classes a small load needs, in the order in which it needs them.

python scripts/write_classes.py

Runs a first load and an upsert from SQLite into Delta with Java's own list of loaded classes. To be done again with
another Spark or Delta; names that are gone by then do no harm. `ahead.jar` is made from Ahead.java beside it:

cd src/floodmark/spark/ahead && javac --release 17 -d classes Ahead.java && jar cMf ahead.jar -C classes floodmark
"""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

LIST = Path(__file__).resolve().parents[1] / "src" / "floodmark" / "spark" / "ahead" / "classes.gz"
PROJECT = """
connections:
  shop: {{type: sqlite, path: shop.db}}
  lake: {{type: delta, path: lake}}
spark:
  archive: off
  resident: off
  config: {{spark.driver.extraJavaOptions: "-XX:DumpLoadedClassList={list}"}}
pipelines:
  orders:
    source: {{connection: shop, table: orders}}
    change: {{by: timestamp, column: updated_at}}
    target: {{connection: lake, table: orders, mode: upsert, keys: [id]}}
"""
FILL = """
INSERT INTO orders WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
SELECT i, 'v' || i, '2026-01-01 10:00:00' FROM n
"""
WITHOUT_AHEAD = """
import sys
from pathlib import Path
from floodmark.spark import launch
launch.AHEAD = Path(sys.argv.pop(1))
from floodmark.cli.main import entry
entry()
"""
"""What a class loaded ahead needs would be taken for what the run needs, and be in every later list."""
JAVAS_OWN = ("java/", "javax/", "jdk/", "sun/", "com/sun/", "[")
"""Java has an archive of those."""


def run(root: Path, statement: str) -> list[str]:
    """The classes that a run needs after this change of the source."""
    with closing(sqlite3.connect(root / "shop.db")) as db:
        db.execute(statement)
        db.commit()
    subprocess.run([sys.executable, "-c", WITHOUT_AHEAD, str(root / "ahead"), "run"], cwd=root, check=True)
    found = (root / "loaded.classes").read_text().splitlines()
    lines = [line.split()[0] for line in found if line and line[0] not in "#@" and "source:" not in line]
    return [name.replace("/", ".") for name in lines if not name.startswith(JAVAS_OWN)]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "ahead").mkdir()
        shutil.copy(LIST.parent / "ahead.jar", root / "ahead")
        _pack(root / "ahead" / LIST.name, [])
        (root / "floodmark.yml").write_text(PROJECT.format(list=root / "loaded.classes"))
        with closing(sqlite3.connect(root / "shop.db")) as db:
            db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, val TEXT, updated_at DATETIME NOT NULL)")
        first = run(root, FILL)
        change = run(root, "UPDATE orders SET val = 'x', updated_at = '2026-01-02 10:00:00' WHERE id % 3 = 0")
    names = list(dict.fromkeys([*change, *first]))
    _pack(LIST, names)
    print(f"{len(names)} classes, {len(set(change))} of them for a small change")


def _pack(path: Path, names: Sequence[str]) -> None:
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write("".join(f"{name}{os.linesep}" for name in names).encode())


if __name__ == "__main__":
    main()
