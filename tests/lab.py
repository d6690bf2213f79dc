"""A small world for a test: a source with an `orders` table, a project file, and a way to compare both ends."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import psycopg
import pymysql

from floodmark.opening import load
from floodmark.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from floodmark.registry import Registry

Row = tuple[int, str, datetime]

CREATE = {
    "sqlite": "CREATE TABLE orders (id INTEGER PRIMARY KEY, val TEXT, updated_at DATETIME NOT NULL)",
    "postgres": "CREATE TABLE orders (id bigint PRIMARY KEY, val text, updated_at timestamptz NOT NULL)",
    "mariadb": "CREATE TABLE orders (id bigint PRIMARY KEY, val text, updated_at datetime(6) NOT NULL)",
}
Kind = Literal["sqlite", "postgres", "mariadb"]
CHANGE = {
    "upsert": "{by: timestamp, column: updated_at, delay: 0s}",
    "append": "{by: sequence, column: id, delay: 0s}",
}


@dataclass
class Lab:
    """`delay: 0s`, since the tests themselves decide who writes when."""

    root: Path
    kind: Kind
    url: str = ""
    spark: SparkSession | None = None
    state: str = "sqlite:///state.db"
    own_spark: str = (
        "{archive: on, config: {spark.sql.codegen.wholeStage: false, spark.sql.codegen.factoryMode: NO_CODEGEN}}"
    )
    """For runs of the command line: the tests bring a session of their own."""
    lake: str = "{type: delta, path: lake}"
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        self.execute(CREATE[self.kind])

    # -- the source -----------------------------------------------------------------------------------------------

    def execute(self, statement: str, rows: Iterable[tuple[Any, ...]] | None = None) -> None:
        if self.kind == "sqlite":
            with sqlite3.connect(self.root / "shop.db") as db:
                db.executemany(statement, rows) if rows is not None else db.execute(statement)
            db.close()
        elif self.kind == "postgres":
            with psycopg.connect(self.url) as pg, pg.cursor() as cursor:
                if rows is None:
                    cursor.execute(statement.encode())
                else:
                    cursor.executemany(statement.replace("?", "%s").encode(), list(rows))
        else:
            with self.mariadb() as my, my.cursor() as cursor:
                if rows is None:
                    cursor.execute(statement)
                else:
                    cursor.executemany(statement.replace("?", "%s"), list(rows))

    def mariadb(self) -> pymysql.Connection[Any]:
        url = urlsplit(self.url)
        return pymysql.connect(
            host=url.hostname,
            port=url.port or 3306,
            user=url.username,
            password=url.password or "",
            database=url.path.lstrip("/"),
            charset="utf8mb4",
            autocommit=True,
        )

    def series(self, count: int, at: str, step: str = "0 second") -> None:
        """Rows 1 to `count`, each that much later than the one before."""
        if self.kind == "mariadb":
            moment = f"timestamp'{at}' + INTERVAL seq * {step.split()[0]} {step.split()[1].rstrip('s')}"
            self.execute(f"INSERT INTO orders SELECT seq, concat('v', seq), {moment} FROM seq_1_to_{count}")
            return
        self.execute(
            f"INSERT INTO orders SELECT i, 'v' || i, timestamptz '{at}+00' + i * interval '{step}' "
            f"FROM generate_series(1, {count}) i"
        )

    def make_nullable(self) -> None:
        own = "ALTER updated_at DROP NOT NULL" if self.kind == "postgres" else "MODIFY updated_at datetime(6) NULL"
        self.execute(f"ALTER TABLE orders {own}")

    def drop_key(self) -> None:
        own = "DROP CONSTRAINT orders_pkey" if self.kind == "postgres" else "DROP PRIMARY KEY"
        self.execute(f"ALTER TABLE orders {own}")

    def insert(self, *rows: tuple[int, str, str]) -> None:
        self.execute("INSERT INTO orders VALUES (?, ?, ?)", rows)

    def fill(self, count: int, at: str = "2026-01-01 10:00:00", start: int = 1) -> None:
        self.insert(*((i, f"v{i}", at) for i in range(start, start + count)))

    def source_rows(self, table: str = "orders") -> list[tuple[Any, ...]]:
        if self.kind == "sqlite":
            with sqlite3.connect(self.root / "shop.db") as db:
                return sorted(db.execute(f"SELECT id, val, updated_at FROM {table}").fetchall())
        if self.kind == "mariadb":
            with self.mariadb() as my, my.cursor() as cursor:
                cursor.execute(f"SELECT id, val, cast(updated_at AS char) FROM {table}")
                return sorted(cursor.fetchall())
        with psycopg.connect(self.url) as pg:
            pg.execute("SET timezone = 'UTC'")
            found = pg.execute(f"SELECT id, val, to_char(updated_at, 'YYYY-MM-DD HH24:MI:SS.US') FROM {table}".encode())
            return sorted(found.fetchall())

    # -- the project ----------------------------------------------------------------------------------------------

    def write(self, *, mode: str = "upsert", batch_rows: int = 1000, pipeline: str = "", **changes: str) -> Path:
        """`changes` replace lines by their key: change, source, target."""
        own = "path: shop.db" if self.kind == "sqlite" else f'url: "{self.url}"'
        connection = f"{{type: {self.kind}, {own}}}"
        keys = ", keys: [id]" if mode == "upsert" else ""
        lines = {
            "source": "{connection: shop, table: orders}",
            "change": CHANGE[mode],
            "target": f"{{connection: lake, table: orders, mode: {mode}{keys}}}",
            "batch_rows": str(batch_rows),
            **changes,
        }
        body = "\n".join(f"    {key}: {value}" for key, value in lines.items())
        text = (
            f"connections:\n  shop: {connection}\n  lake: {self.lake}\n"
            f"spark: {self.own_spark}\nstate: {self.state}\npipelines:\n  {pipeline or 'orders'}:\n{body}\n"
        )
        path = self.root / "floodmark.yml"
        path.write_text(text)
        return path

    def project(self, faults: Registry | None = None, /, **declared: Any) -> Project:
        return load(self.write(**declared), registry=faults, spark=self.spark)

    def append_line(self, line: str) -> None:
        """A setting at the top level of the file as it is."""
        path = self.root / "floodmark.yml"
        path.write_text(f"{path.read_text()}{line}\n")

    def load(self) -> Project:
        """The file as it is."""
        return load(self.root / "floodmark.yml", spark=self.spark)

    # -- the target -----------------------------------------------------------------------------------------------

    @property
    def table(self) -> str:
        return str(self.root / "lake" / "orders")

    def target_rows(self) -> list[tuple[Any, ...]]:
        assert self.spark is not None
        found = self.spark.read.format("delta").load(self.table)
        shown = found.selectExpr("id", "val", "date_format(updated_at, 'yyyy-MM-dd HH:mm:ss.SSSSSS') AS at").collect()
        return sorted(tuple(row) for row in shown)

    def target_columns(self) -> list[str]:
        assert self.spark is not None
        return list(self.spark.read.format("delta").load(self.table).columns)

    def assert_equal(self) -> None:
        ours = [(i, v, _micros(at)) for i, v, at in self.source_rows()]
        theirs = self.target_rows()
        assert len(theirs) == len(ours)
        assert theirs == ours


def _micros(text: str) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M:%S.%f}"


def ok(result: Any) -> Any:
    """The result of a run that must have succeeded."""
    if result.failure is not None:
        raise AssertionError(f"the run failed: {result.errors}") from result.failure
    return result


def load_after_load(lab: Lab, mode: str, *, batch_rows: int = 10) -> None:
    """A first load in slices, rows that came later, nothing new, and a state that was lost: rows v1 to v35."""
    lab.insert(*((i, f"v{i}", f"2026-01-01 10:{i:02}:00") for i in range(1, 31)))
    project = lab.project(mode=mode, batch_rows=batch_rows)
    assert ok(project.run_until_complete("orders")).rows.inserted == 30
    lab.fill(5, at="2026-01-02 10:00:00", start=31)
    assert ok(project.run("orders")).rows.inserted == 5
    assert ok(project.run("orders")).nothing_new
    project.store.delete("orders")
    again = ok(project.run("orders"))
    assert "the state was rebuilt from the target" in again.notices
    assert again.rows.loaded == 0
