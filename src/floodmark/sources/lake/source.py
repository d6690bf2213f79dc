"""A table of a lakehouse. What its metadata says is read without Spark; its rows are Spark's work, so the look is, too.

A version of such a table never changes: each look and each slice reads one, whole. Who else is about to commit rows,
and with which values, can't be seen, so the safety delay decides what is final.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from floodmark.errors import ConfigError, SourceError
from floodmark.hashing import row_hash
from floodmark.javawords import first_line
from floodmark.model.names import spark_name
from floodmark.model.plan import Look
from floodmark.model.position import Position, Scalar
from floodmark.model.spec import PipelineSpec
from floodmark.model.table import Column, Cursor, TableInfo
from floodmark.ports import AsOf, LookRequest, ReadRequest
from floodmark.retries import sounds_transient
from floodmark.sources.bound import delayed, delayed_bound
from floodmark.sources.lake.cuts import Cuts
from floodmark.sources.lake.values import literal, scalar
from floodmark.sources.lake.versions import Versions, is_forgotten, is_gone
from floodmark.sources.relation import Relation
from floodmark.sources.sql import CursorSql, Dialect
from floodmark.sources.sql_source import SqlSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNSEEN = "another writer may be about to commit rows with lower values, and a lake does not show who is at work"


class LakeSource(SqlSource):
    _dialect = Dialect(quote=spark_name, row_values=False, random="rand()")

    def __init__(self, spec: PipelineSpec) -> None:
        self._spec = spec
        if spec.source.table is None:
            raise ConfigError(
                "a query can't be read from a lake, only a table",
                declared_at=spec.at("source.query"),
                hint="name a `table`, and choose its rows and columns with `select` or a `transform`",
            )
        self._name = spec.source.table
        self._pinned: int | None = None
        self._travelled = False
        self._answers: dict[str, list[Any]] = {}
        self._relation = Relation(self._name, "", None, None, spec.at("source.table"))
        self._cuts = Cuts()
        self._open: Callable[[], SparkSession] | None = None
        self._spark: SparkSession | None = None

    def attach(self, spark: Callable[[], SparkSession]) -> None:
        self._open = spark

    # -- what each lake says in its own way, without Spark --------------------------------------------------------

    @abstractmethod
    def _table_sql(self) -> str:
        """The table's name in Spark's SQL."""

    @abstractmethod
    def _newest(self) -> int | None:
        """The version that the table is at; None before its first. Raises ConfigError when there is no table."""

    @abstractmethod
    def _columns(self, version: int | None) -> tuple[Column, ...]: ...

    @abstractmethod
    def _versions(self) -> Versions:
        """Those that the metadata still knows."""

    @abstractmethod
    def _kept_from(self, version: int) -> int | None:
        """The oldest version above this one that has all its files; None where nobody can say."""

    def _prepare(self, spark: SparkSession) -> None:
        """Makes the lake known to the session."""

    # -- versions -------------------------------------------------------------------------------------------------

    def at(self, as_of: AsOf) -> LakeSource:
        then = copy(self)
        then._pin(self._versions().find(as_of, self._name))
        then._cuts, then._travelled = Cuts(), True
        return then

    def _pin(self, version: int | None) -> None:
        self._pinned, self._answers = version, {}
        self._relation = self._related(version)

    def _related(self, version: int | None) -> Relation:
        pin = "" if version is None else f" VERSION AS OF {version}"
        return replace(self._relation, sql=f"{self._table_sql()}{pin} q")

    @contextmanager
    def _view(self) -> Iterator[None]:
        if self._pinned is not None:
            yield
            return
        self._pin(self._newest())
        try:
            yield
        finally:
            self._pin(None)

    @contextmanager
    def snapshot(self) -> Iterator[str | None]:
        version = self._newest() if self._pinned is None else self._pinned
        yield None if version is None else str(version)

    # -- Spark ----------------------------------------------------------------------------------------------------

    def _session(self) -> SparkSession:
        if self._spark is None:
            assert self._open is not None  # noqa: S101 - whoever makes a source attaches Spark to it
            self._spark = self._open()
            self._prepare(self._spark)
        return self._spark

    def _rows(self, statement: str, *columns: str) -> list[Any]:
        """A few, of columns in SQL: only here there is a Spark for certain. One version gives one answer: a look asks
        for some of them more than once."""
        if statement in self._answers:
            return self._answers[statement]
        with self._told():
            found: list[Any] = self._session().sql(statement).selectExpr(*(columns or ["*"])).collect()
        if self._pinned is not None and len(found) <= 1:
            self._answers[statement] = found
        return found

    def _number(self, statement: str) -> int:
        return int(self._rows(statement)[0][0])

    @contextmanager
    def _told(self) -> Iterator[None]:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        try:
            yield
        except (PySparkException, Py4JError) as error:
            if self._pinned is not None and self._travelled and is_gone(error):
                raise self._versions().gone(self._pinned, self._kept_from(self._pinned), self._name) from error
            if self._travelled and is_forgotten(error):
                raise ConfigError(
                    f"there is no version {self._pinned} of {self._name} any more",
                    table=self._name,
                    hint=first_line(error),
                ) from error
            raise SourceError(
                f"{self._name}: {first_line(error)}",
                table=self._name,
                declared_at=self._relation.declared_at,
                transient=sounds_transient(error) or is_gone(error),
            ) from error

    def describe(self) -> TableInfo:
        return TableInfo(self._name, self._columns(self._pinned))

    def close(self) -> None:
        """The session is the project's."""
        self._spark = None

    # -- the look -------------------------------------------------------------------------------------------------

    def look(self, request: LookRequest) -> Look:
        """By the clock of this machine: a lake has none."""
        clock = datetime.now(UTC)
        guarantee = delayed(request.delay, UNSEEN)
        with self._view():
            probe = self._probe(request.cursor)
            return probe.look(request, clock, lambda top: delayed_bound(request, clock, top), guarantee)

    def nulls(self, cursor: Cursor, *, checksum: bool) -> tuple[int, str]:
        with self._view():
            return super().nulls(cursor, checksum=checksum)

    def count(self, cursor: Cursor, after: Position | None, until: Position | None) -> int:
        with self._view():
            return super().count(cursor, after, until)

    def next_cut(self, cursor: Cursor, after: Position | None, until: Position, rows: int) -> Position | None:
        """From a sample: no lake has an index to count along."""

        def sample(share: float) -> list[tuple[Scalar, ...]]:
            with self._view():
                sql = self._cursor_sql(cursor)
                return self._values(sql.sample(sql.bounds(after, until), share), cursor)

        return self._cuts.next(after, until, rows, lambda: self.count(cursor, after, until), sample)

    def _checksum(self, where: str) -> str:
        from pyspark.sql import functions as F

        with self._told():
            rows = self._session().sql(f"SELECT * FROM {self._relation.sql} WHERE {where}")
            return str(rows.agg(F.sum(row_hash(rows).cast("decimal(38,0)"))).collect()[0][0] or 0)

    def _cursor_sql(self, cursor: Cursor) -> CursorSql:
        return CursorSql(self._relation.sql, cursor, literal, self._dialect)

    def _fetch(self, statement: str, cursor: Cursor) -> tuple[Scalar, ...] | None:
        return next(iter(self._values(statement, cursor)), None)

    def _values(self, statement: str, cursor: Cursor) -> list[tuple[Scalar, ...]]:
        # A moment as a number: PySpark would show it in this machine's zone.
        names = [(spark_name(c.name), c.zoned) for c in cursor.columns]
        columns = [f"unix_micros({name})" if zoned else name for name, zoned in names]
        found = self._rows(statement, *columns)
        return [tuple(scalar(v, c, cursor) for v, c in zip(row, cursor.columns, strict=True)) for row in found]

    # -- reading --------------------------------------------------------------------------------------------------

    def read(self, spark: SparkSession, request: ReadRequest, snapshot: str | None) -> DataFrame:
        self._prepare(spark)
        relation = self._related(None if snapshot is None else int(snapshot))
        with self._told():
            return spark.sql(f"SELECT * FROM {relation.sql} WHERE {self._where(request)}")
