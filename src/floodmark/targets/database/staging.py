"""Rows from Spark's tasks into a staging table, each task over a connection of its own.

A task that is tried again after its own commit leaves its rows behind twice. So rows carry the attempt that brought
them, and each attempt that Spark counts says how many there were: only those are promoted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

OURS = "floodmark: "
"""What a user is to be told begins with it, wherever in Spark's trace it stands."""
_REPORT = "attempt bigint, rows bigint"


@dataclass(frozen=True)
class Told:
    """By the attempts that count."""

    attempts: tuple[int, ...]
    rows: int


def attempt_here() -> int:
    """Of the task that this runs in."""
    from pyspark import TaskContext

    task = TaskContext.get()
    return 0 if task is None else int(task.taskAttemptId())


def report(attempt: int, rows: int) -> pyarrow.RecordBatch:
    import pyarrow

    return pyarrow.RecordBatch.from_pydict({"attempt": [attempt], "rows": [rows]})


def stage(batch: DataFrame, put: Callable[[Iterable[Any]], Iterable[Any]]) -> Told:
    """`put` takes a task's rows as Arrow and hands back its report."""
    told = batch.mapInArrow(put, _REPORT).collect()
    return Told(tuple(row.attempt for row in told), sum(row.rows for row in told))
