"""H2, a database that only Java knows, for the jdbc source."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark.spark.jars import jars_for
from floodmark.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

H2 = "com.h2database:h2:2.4.240"


def run_script(folder: Path, url: str, *statements: str) -> None:
    """In a JVM of its own, which lets go of the file."""
    script = folder / "script.sql"
    script.write_text(";\n".join(statements) + ";\n")
    (jar,) = jars_for([H2])
    command = [str(find_java().path), "-cp", str(jar), "org.h2.tools.RunScript", "-url", url, "-user", "sa"]
    subprocess.run([*command, "-script", str(script)], check=True, capture_output=True, timeout=120)


class H2Shop:
    """A file with an `orders` table."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self.spark = root, spark
        self.url = f"jdbc:h2:file:{root}/shop"
        self.execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY, val varchar(50), cents decimal(12,2), "
            "updated_at timestamp(6) NOT NULL, seen timestamp(6) with time zone)"
        )

    def execute(self, *statements: str) -> None:
        run_script(self.root, self.url, *statements)

    def fill(self, first: int, last: int, at: str = "2026-01-01 10:00:00") -> None:
        self.execute(
            f"INSERT INTO orders SELECT x, 'it''s ' || x, x / 4.0, timestamp '{at}' + x * interval '1' second, "
            f"timestamp with time zone '2026-01-01 10:00:00+02:00' FROM system_range({first}, {last})"
        )

    def target(self) -> list[tuple[Any, ...]]:
        found = self.spark.read.format("delta").load(str(self.root / "lake" / "orders"))
        shown = ("ID", "VAL", "CAST(CENTS AS STRING)", "CAST(UPDATED_AT AS STRING)", "unix_seconds(SEEN)")
        return sorted(tuple(row) for row in found.selectExpr(*shown).collect())
