"""Names that other tools trip over, for everything that has one, through whole runs."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg
import pymysql
import pytest
from tests.lab import ok
from tests.services import run_cli

from floodmark.errors import ConfigError, TargetError
from floodmark.opening import declare, validate
from floodmark.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ODD = (
    "a space", " around ", "dot.ted", 'double"quote', "single'quote", "back`tick", "back\\slash", "Camel", "select",
    "größe", "日本語", "🌊", "per%cent", "%s", "dol$lar", "${spark.app.name}",
    "1digit", "-dash", "col:on", "ques?tion", "hash#", "at@",
    "comma, semi;colon", "(round) {curly} [square] <angle>", "equals=", "slash/ed", "tab\ttab", "line\nbreak", "*",
    "floodmark_0", "t", "s", "source", "x" * 63,
)  # fmt: skip

WORST = "1 \"Wörst\" 'of' `all`. %s ${x} ;,=()[]日🌊"
"""All of them in one, for what there is only one of."""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> Any:
    """As it is written in a project file, where a dollar begins a variable."""
    if isinstance(value, dict):
        return {key: literal(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [literal(inner) for inner in value]
    return value.replace("$", "$$") if isinstance(value, str) else value


@dataclass(frozen=True)
class World:
    root: Path
    kind: str
    url: str
    spark: SparkSession

    def execute(self, statement: str, *rows: tuple[Any, ...]) -> None:
        marks = "?" if self.kind == "sqlite" else "%s"
        if rows:
            if self.kind != "sqlite":
                statement = statement.replace("%", "%%")
            statement += f" VALUES ({', '.join([marks] * len(rows[0]))})"
        if self.kind == "sqlite":
            with sqlite3.connect(self.root / "shop.db") as db:
                db.executemany(statement, rows) if rows else db.execute(statement)
            db.close()
            return
        if self.kind == "mariadb":
            self._execute_mariadb(statement, rows)
            return
        with psycopg.connect(self.url) as pg, pg.cursor() as cursor:
            cursor.executemany(statement.encode(), rows) if rows else cursor.execute(statement.encode())

    def _execute_mariadb(self, statement: str, rows: tuple[tuple[Any, ...], ...]) -> None:
        where = urlsplit(self.url)
        with (
            pymysql.connect(
                host=where.hostname or "",
                port=where.port or 0,
                user=where.username,
                password=where.password or "",
                database=where.path.lstrip("/"),
                autocommit=True,
                sql_mode="ANSI_QUOTES",
            ) as my,
            my.cursor() as cursor,
        ):
            cursor.executemany(statement, rows) if rows else cursor.execute(statement)

    @property
    def odd(self) -> tuple[str, ...]:
        """MariaDB has names of the basic plane only, and none with a blank at its end."""
        return tuple(n for n in ODD if self.kind != "mariadb" or (n == n.rstrip() and max(map(ord, n)) < 0x10000))

    @property
    def worst(self) -> str:
        return WORST.replace("🌊", "~") if self.kind == "mariadb" else WORST

    def project(self, name: str = "p", **pipeline: Any) -> Project:
        kind = {"mariadb": "mysql"}.get(self.kind, self.kind)
        shop = {"type": "sqlite", "path": "shop.db"} if self.kind == "sqlite" else {"type": kind, "url": self.url}
        connections = {"shop": shop, "lake": {"type": "delta", "path": "lake"}}
        pipeline["source"] = {"connection": "shop", **pipeline["source"]}
        pipeline["target"] = {"connection": "lake", **pipeline["target"]}
        document = {"connections": connections, "pipelines": {name: literal(pipeline)}}
        return declare(document, root=self.root, spark=self.spark)

    def loaded(self, table: str) -> list[tuple[Any, ...]]:
        frame = self.spark.read.format("delta").load(str(self.root / "lake" / table))
        return sorted(tuple(row) for row in frame.collect())


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def world(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> World:
    database = {"postgres": "pg_db", "mariadb": "my_db"}.get(request.param)
    url = request.getfixturevalue(database) if database else ""
    return World(tmp_path, request.param, url, spark)


def test_columns_of_any_name_load_and_merge(world: World) -> None:
    columns = ", ".join(f"{quoted(name)} text" for name in world.odd)
    world.execute(f"CREATE TABLE t1 (id int PRIMARY KEY, v int NOT NULL, {columns})")
    insert = f"INSERT INTO t1 (id, v, {', '.join(map(quoted, world.odd))})"
    world.execute(insert, (1, 1, *(f"{n} 1" for n in world.odd)), (2, 1, *(None for _ in world.odd)))
    project = world.project(
        source={"table": "t1"},
        change={"by": "sequence", "column": "v", "delay": "0s"},
        target={"table": "t1", "mode": "upsert", "keys": ["id"]},
    )
    ok(project.run("p"))
    world.execute("DELETE FROM t1 WHERE id = 2")
    world.execute(insert, (2, 2, *(f"{n} 2" for n in world.odd)), (3, 2, *(f"{n} 3" for n in world.odd)))
    rows = ok(project.run("p")).rows
    assert (rows.inserted, rows.updated) == (1, 1)
    frame = world.spark.read.format("delta").load(str(world.root / "lake" / "t1"))
    assert frame.columns == ["id", "v", *world.odd]
    wanted = [
        (1, 1, *(f"{n} 1" for n in world.odd)),
        (2, 2, *(f"{n} 2" for n in world.odd)),
        (3, 2, *(f"{n} 3" for n in world.odd)),
    ]
    assert world.loaded("t1") == wanted


def test_the_worst_name_for_everything_that_has_one(world: World) -> None:
    """Composite cursor, ties over slices, clustering, and all that is done with a pipeline's state by its name."""
    worst = world.worst
    schema = worst if world.kind == "postgres" else ""
    table = f"{quoted(schema)}.{quoted(worst)}" if schema else quoted(worst)
    key, at, value = (f"{word} {worst}"[:50] for word in ("key", "at", "value"))
    if schema:
        world.execute(f"CREATE SCHEMA {quoted(schema)}")
    world.execute(
        f"CREATE TABLE {table} "
        f"({quoted(key)} bigint PRIMARY KEY, {quoted(at)} timestamp NOT NULL, {quoted(value)} text)"
    )
    world.execute(f"INSERT INTO {table}", *((i, "2026-01-01 10:00:00", f"v{i}") for i in range(1, 8)))
    project = world.project(
        worst,
        source={"table": worst if world.kind == "sqlite" else table, "partitions": 2},
        change={"by": "timestamp", "columns": [at, key], "delay": "0s"},
        target={"table": worst, "mode": "upsert", "keys": [key], "cluster_by": [value]},
        batch_rows=3,
    )
    first = ok(project.run(worst))
    assert first.rows.inserted == 7
    assert first.slices >= 3
    world.execute(
        f"UPDATE {table} SET {quoted(value)} = 'new', {quoted(at)} = '2026-01-02 10:00:00' WHERE {quoted(key)} = 2"
    )
    second = ok(project.run(worst)).rows
    assert (second.inserted, second.updated) == (0, 1)
    assert [row[2] for row in world.loaded(worst)] == ["v1", "new", *(f"v{i}" for i in range(3, 8))]
    assert ok(project.run(worst)).nothing_new
    assert [(run.pipeline, run.rows_inserted) for run in project.history(worst)] == [(worst, n) for n in (None, 0, 7)]
    state = project.reset(worst)
    assert state.mark is None
    assert str(project.set_mark(worst, "2026-01-02").mark) == "2026-01-02 00:00:00"
    assert project.status(worst).pipeline == worst
    assert ok(project.run(worst)).rows.inserted == 0


def test_the_worst_name_in_an_append_that_is_partitioned_and_reset(world: World) -> None:
    worst = world.worst
    key, part = f"key {worst}"[:50], f"part {worst}"[:50]
    world.execute(f"CREATE TABLE t1 ({quoted(key)} int PRIMARY KEY, {quoted(part)} text)")
    world.execute("INSERT INTO t1", *((i, f"{worst} {i % 2}") for i in range(1, 8)))
    project = world.project(
        source={"table": "t1"},
        change={"by": "sequence", "column": key, "delay": "0s"},
        target={"table": "t1", "mode": "append", "partition_by": [part]},
        batch_rows=4,
    )
    assert ok(project.run("p")).rows.inserted == 7
    project.reset("p", "3")
    assert ok(project.run("p")).rows.inserted == 5
    assert world.loaded("t1") == [(i, f"{worst} {i % 2}") for i in range(1, 8)]
    assert ok(project.run("p", full_refresh=True)).rows.inserted == 7
    assert world.loaded("t1") == [(i, f"{worst} {i % 2}") for i in range(1, 8)]


@pytest.mark.parametrize("world", ["sqlite", "postgres"], indirect=True)
def test_two_columns_that_differ_only_by_case_are_refused(world: World) -> None:
    """SQLite has such columns only beyond ASCII, Postgres in general, MariaDB never."""
    first, second = ("é", "É") if world.kind == "sqlite" else ("Total", "total")
    world.execute(f"CREATE TABLE t1 (id int PRIMARY KEY, {quoted(first)} int, {quoted(second)} int)")
    project = world.project(source={"table": "t1"}, change={"by": "none"}, target={"table": "t1", "mode": "replace"})
    with pytest.raises(ConfigError) as caught:
        project.plan("p")
    assert f'columns "{first}" and "{second}" of t1 differ only by case' in caught.value.message
    assert "a view that gives one of them another name" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ("id, v AS A, v AS a", 'columns "A" and "a" differ only by case'),
        ("id, v AS _METADATA", 'column "_METADATA" can\'t be in a Delta table'),
        ("id, INTERVAL 1 DAY AS d", 'column "d" is interval day, which Delta has no place for'),
        ("id, NULL AS n", 'column "n" is void'),
        ("id, named_struct('a b', array(TIME'10:00:00')) AS s", 'column "s.a b" is time(6)'),
        ("id, 'x' COLLATE UNICODE_CI AS c", 'column "c" is string collate UNICODE_CI'),
    ],
)
def test_what_a_transform_makes_and_delta_can_not_hold_is_refused(
    tmp_path: Path, spark: SparkSession, select: str, words: str
) -> None:
    world = World(tmp_path, "sqlite", "", spark)
    world.execute("CREATE TABLE t1 (id int PRIMARY KEY, v int)")
    world.execute("INSERT INTO t1", (1, 2))
    project = world.project(
        source={"table": "t1"},
        change={"by": "none"},
        target={"table": "t1", "mode": "replace"},
        transform={"sql": f"SELECT {select} FROM source"},
    )
    result = project.run("p")
    assert isinstance(result.failure, TargetError)
    assert words in result.errors[0]
    assert result.failure.hint is not None
    assert not (tmp_path / "lake").exists()


def test_fields_of_a_struct_may_have_any_name(tmp_path: Path, spark: SparkSession) -> None:
    world = World(tmp_path, "sqlite", "", spark)
    world.execute("CREATE TABLE t1 (id int PRIMARY KEY)")
    world.execute("INSERT INTO t1", (1,))
    project = world.project(
        source={"table": "t1"},
        change={"by": "sequence", "column": "id"},
        target={"table": "t1", "mode": "append"},
        transform={"sql": "SELECT id, map('k', array(named_struct('a `b`, c', id))) AS m FROM source"},
    )
    ok(project.run("p"))
    assert world.loaded("t1") == [(1, {"k": [(1,)]})]


@pytest.mark.parametrize("name", ["a?b", "a#b", "a%41b", "a\\b", "a\nb", "x" * 256])
def test_a_folder_that_readers_would_not_agree_on_is_refused(tmp_path: Path, spark: SparkSession, name: str) -> None:
    world = World(tmp_path, "sqlite", "", spark)
    world.execute("CREATE TABLE t1 (id int PRIMARY KEY)")
    project = world.project(source={"table": "t1"}, change={"by": "none"}, target={"table": name, "mode": "replace"})
    with pytest.raises(ConfigError, match="can't be the folder of a Delta table"):
        project.plan("p")


def test_a_table_s_name_is_split_as_in_sql(pg_db: str, tmp_path: Path, spark: SparkSession) -> None:
    world = World(tmp_path, "postgres", pg_db, spark)
    world.execute('CREATE SCHEMA "a.b"')
    world.execute('CREATE TABLE "a.b"."c""d" (id int PRIMARY KEY)')

    def project(table: str) -> Project:
        return world.project(source={"table": table}, change={"by": "none"}, target={"table": "t", "mode": "replace"})

    assert project('"a.b"."c""d"').plan("p").first
    with pytest.raises(ConfigError) as missing:
        project("a.c").plan("p")
    assert '"a.b"."c""d"' in (missing.value.hint or "")
    for wrong in ('a."b', 'a"b', "a..b", ".a", '"a"b'):
        with pytest.raises(ConfigError, match="is not the name of a table"):
            project(wrong).plan("p")


@pytest.mark.parametrize(("key", "hint"), [("123", 'put it in quotes: "123"'), ("on", "choose"), ("true", "choose")])
def test_a_pipeline_s_name_that_yaml_takes_for_something_else(tmp_path: Path, key: str, hint: str) -> None:
    text = (
        "connections: {shop: {type: sqlite, path: shop.db}, lake: {type: delta, path: lake}}\n"
        f"pipelines:\n  {key}:\n    source: {{connection: shop, table: t}}\n    change: {{by: none}}\n"
        "    target: {connection: lake, table: t, mode: replace}\n"
    )
    path = tmp_path / "floodmark.yml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        validate(path)
    assert hint in str(caught.value.hint or caught.value.message)
    path.write_text(text.replace(f"  {key}:", '  "123":'))
    assert list(validate(path).pipelines) == ["123"]


def test_the_command_line_takes_the_worst_name(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    pipeline = {
        "source": {"connection": "shop", "table": "t"},
        "change": {"by": "sequence", "column": "id"},
        "target": {"connection": "lake", "table": literal(WORST), "mode": "append"},
    }
    connections = {"shop": {"type": "sqlite", "path": "shop.db"}, "lake": {"type": "delta", "path": "lake"}}
    document = {"connections": connections, "pipelines": {WORST: pipeline}}
    (tmp_path / "floodmark.yml").write_text(json.dumps(document, ensure_ascii=False))  # which is YAML, too
    run_cli("run", WORST, cwd=tmp_path)
    run_cli("state", "set", WORST, "--mark", "5", cwd=tmp_path)
    said = json.loads(run_cli("state", "get", WORST, "--json", cwd=tmp_path).stdout)
    assert said["pipeline"] == WORST
    assert [line["pipeline"] for line in json.loads(run_cli("status", "--json", cwd=tmp_path).stdout)] == [WORST]
    run_cli("history", WORST, cwd=tmp_path)
    run_cli("state", "reset", WORST, cwd=tmp_path)
