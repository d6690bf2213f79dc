"""A load's own line of snapshots, which main is taken to in one step when it is whole.

The branch starts at the snapshot of main that the load was decided on, and its name belongs to one attempt alone. Main
is moved forward only to a descendant of itself, so if anybody has committed to it in between, nothing happens. There is
one way around that, which `is_sound` closes: a branch that was dropped under its writer is made again by Iceberg, from
main as it is by then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING
from uuid import uuid4

from floodmark.model.names import spark_name
from floodmark.targets.iceberg.snapshots import PREFIX, IcebergLog
from floodmark.targets.lake_sql import text_literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Branch:
    spark: SparkSession
    catalog: str
    table: tuple[str, ...]
    """Namespace and name."""
    base: int | None
    """Main's snapshot; None where there is none."""
    name: str

    @property
    def of(self) -> str:
        """The table, in SQL."""
        return ".".join(map(spark_name, (self.catalog, *self.table)))

    @property
    def path(self) -> str:
        """What is written to."""
        return f"{self.of}.{spark_name(f'branch_{self.name}')}"

    def is_sound(self, log: IcebergLog) -> bool:
        """What is on it was written by this attempt, and right behind `base`."""
        line = list(log.ancestors(log.branches.get(self.name)))
        ours = list(takewhile(lambda s: s.attempt == self.name, line))
        before = next(dropwhile(lambda s: s.attempt == self.name, line), None)
        if not ours or before is None:
            return False
        if self.base is not None:
            return before.id == self.base
        return before.parent is None and before.attempt is None and not before.count("total-records")

    def publish(self) -> None:
        table = text_literal(".".join(map(spark_name, self.table)))
        call = f"{spark_name(self.catalog)}.system.fast_forward"
        self.spark.sql(f"CALL {call}(table => {table}, branch => 'main', to => {text_literal(self.name)})").collect()

    def start(self) -> None:
        at = "" if self.base is None else f" AS OF VERSION {self.base}"
        self.spark.sql(f"ALTER TABLE {self.of} CREATE BRANCH {spark_name(self.name)}{at}").collect()

    def drop(self, name: str | None = None) -> None:
        self.spark.sql(f"ALTER TABLE {self.of} DROP BRANCH IF EXISTS {spark_name(name or self.name)}").collect()


@contextmanager
def branch_from(
    log: IcebergLog, spark: SparkSession, catalog: str, table: tuple[str, ...], batch: str
) -> Iterator[Branch]:
    """Branches that dead runs have left are dropped first, and this one at the end, or else by the next load."""
    name = f"{PREFIX}{re.sub(r'[^0-9A-Za-z]', '', batch)}_{uuid4().hex[:8]}"
    branch = Branch(spark, catalog, table, log.main, name)
    for left in log.leftovers:
        branch.drop(left)
    branch.start()
    try:
        yield branch
    finally:
        with suppress(Exception):
            branch.drop()
