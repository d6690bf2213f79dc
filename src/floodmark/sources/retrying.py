"""Any source, with what may pass tried again. Reading is left out: its rows flow when the target loads them, and a
load that failed is repeated as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from floodmark.model.plan import Look
from floodmark.model.position import Position
from floodmark.model.spec import RetrySpec
from floodmark.model.table import Cursor, TableInfo
from floodmark.ports import LookRequest, ReadRequest, Source
from floodmark.retries import retrying

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class RetryingSource:
    source: Source
    spec: RetrySpec
    tell: Callable[[str], None]

    def describe(self) -> TableInfo:
        return retrying(self.spec, self.source.describe, self.tell)

    def nulls(self, cursor: Cursor, *, checksum: bool) -> tuple[int, str]:
        return retrying(self.spec, lambda: self.source.nulls(cursor, checksum=checksum), self.tell)

    def count(self, cursor: Cursor, after: Position | None, until: Position | None) -> int:
        return retrying(self.spec, lambda: self.source.count(cursor, after, until), self.tell)

    def look(self, request: LookRequest) -> Look:
        return retrying(self.spec, lambda: self.source.look(request), self.tell)

    def next_cut(self, cursor: Cursor, after: Position | None, until: Position, rows: int) -> Position | None:
        return retrying(self.spec, lambda: self.source.next_cut(cursor, after, until, rows), self.tell)

    @contextmanager
    def snapshot(self) -> Iterator[str | None]:
        with ExitStack() as stack:
            yield retrying(self.spec, lambda: stack.enter_context(self.source.snapshot()), self.tell)

    def read(self, spark: SparkSession, request: ReadRequest, snapshot: str | None) -> DataFrame:
        return self.source.read(spark, request, snapshot)

    def close(self) -> None:
        self.source.close()
