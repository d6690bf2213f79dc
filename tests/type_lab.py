"""One row per type through a real run: what arrives, as Spark and others read it, and the page that says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pytest
from deltalake import DeltaTable, QueryBuilder
from tests.lab import ok

from floodmark.javawords import first_line
from floodmark.opening import declare
from floodmark.ports import ReadRequest, Source
from floodmark.project import Project
from floodmark.registry import Registry
from floodmark.spark.session import own_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).resolve().parents[1] / "docs" / "types.md"


@dataclass(frozen=True)
class Case:
    """`literal` is the value in the source's SQL, `value` the same as Spark shows it in the target."""

    declared: str
    literal: str
    arrives: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Refusal:
    declared: str
    literal: str
    shown: str
    """Stands in the message."""
    note: str = ""


@dataclass(frozen=True)
class Catalogue:
    """All that is known of one source's types; each source brings its own."""

    title: str
    connection: dict[str, Any]
    cases: Sequence[Case]
    refusals: Sequence[Refusal]
    execute: Callable[[str], None]
    setup: Sequence[str] = ()

    def create(self, table: str, columns: Sequence[Case | Refusal]) -> None:
        """Row 1 has the values, row 2 NULLs."""
        declared = ", ".join(f"c{place} {case.declared}" for place, case in enumerate(columns))
        self.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, {declared})")
        names = ", ".join(f"c{place}" for place in range(len(columns)))
        self.execute(f"INSERT INTO {table} (id, {names}) VALUES (1, {', '.join(case.literal for case in columns)})")
        self.execute(f"INSERT INTO {table} (id) VALUES (2)")

    def project(self, root: Path, spark: SparkSession | None, table: str, **extra: Any) -> Project:
        target = {"connection": "lake", "table": table, "mode": "append"}
        pipeline = {
            "source": {"connection": "shop", "table": table},
            "change": {"by": "sequence", "column": "id", "delay": "0s"},
            "target": target,
            **extra,
        }
        connections = {"shop": self.connection, "lake": {"type": "delta", "path": "lake"}}
        return declare({"connections": connections, "pipelines": {"types": pipeline}}, root=root, spark=spark)

    def observe(self, root: Path, spark: SparkSession) -> list[tuple[Case, str, str]]:
        """Each case with the type and the value that arrived; the row of NULLs is NULL still."""
        for statement in self.setup:
            self.execute(statement)
        self.create("types", self.cases)
        ok(self.project(root, spark, "types").run("types"))
        frame = spark.read.format("delta").load(str(root / "lake" / "types"))
        types = dict(frame.dtypes)
        rows = (
            frame.selectExpr("id", *(_shown(name, types[name]) for name in frame.columns[1:])).orderBy("id").collect()
        )
        assert set(rows[1][1:]) == {None}
        return [(case, types[f"c{i}"], rows[0][f"c{i}"]) for i, case in enumerate(self.cases)]

    def refused(self, root: Path, spark: SparkSession) -> Iterator[tuple[str, str]]:
        """What the message should say, and what it says."""
        self.create("odd", self.refusals)
        spec = self.project(root, spark, "odd").spec
        factory = Registry.default().get("source", self.connection["type"])
        source: Source = factory(spec.connections["shop"], spec.pipelines["types"], root)
        frame = source.read(own_session(spark), ReadRequest(None, None, None, None), None)
        source.close()
        for place, refusal in enumerate(self.refusals):
            name = f"c{place}"
            with pytest.raises(Exception, match="floodmark:") as caught:
                frame.select(name).collect()
            yield f'column "{name}" of odd holds {refusal.shown}', first_line(caught.value)

    def section(self, seen: Sequence[tuple[Case, str, str]]) -> str:
        lines = [
            f"## {self.title}",
            "",
            "| source type | value | arrives as | value there | note |",
            "|---|---|---|---|---|",
        ]
        for case, kind, value in seen:
            cells = [f"`{case.declared}`", _code(case.literal), f"`{kind}`", _code(value), case.note]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines += ["", "Refused, by column and value:", "", "| source type | value | why |", "|---|---|---|"]
        for refusal in self.refusals:
            cells = [f"`{refusal.declared}`", _code(refusal.literal), refusal.note]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        return "\n".join(lines) + "\n"


def _shown(name: str, kind: str) -> str:
    """As text, so that values outside Python's own ranges can be compared, too."""
    if kind == "binary":
        return f"hex({name}) AS {name}"
    return f"to_json({name}) AS {name}" if kind.startswith("array") else f"cast({name} AS string) AS {name}"


def _code(text: str) -> str:
    text = text.replace("\n", "\\n").replace("\t", "\\t")
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}" if text else "(empty)"


def assert_others_read_the_same(root: Path, spark: SparkSession) -> None:
    """The `deltalake` package shares no code with Spark. Times are compared as numbers: Python's have other ranges."""
    path = str(root / "lake" / "types")
    ours = spark.read.format("delta").load(path).orderBy("id").toArrow()
    found = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t ORDER BY id").read_all()
    theirs = pyarrow.table(found)
    assert theirs.column_names == ours.column_names
    for name in ours.column_names:
        assert _comparable(theirs.column(name)) == _comparable(ours.column(name)), name


def _comparable(column: Any) -> list[str]:
    if pyarrow.types.is_temporal(column.type):
        column = column.cast(pyarrow.int32() if pyarrow.types.is_date(column.type) else pyarrow.int64())
    return [repr(value) for value in column.to_pylist()]
