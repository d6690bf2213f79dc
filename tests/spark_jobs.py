"""What Spark was asked to do, from its own records: jobs, stages and tasks of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Job:
    number: int
    about: str
    milliseconds: int
    stages: int
    tasks: int


@dataclass
class Watched:
    jobs: list[Job] = field(default_factory=list)

    @property
    def stages(self) -> int:
        return sum(job.stages for job in self.jobs)

    @property
    def tasks(self) -> int:
        return sum(job.tasks for job in self.jobs)

    def __str__(self) -> str:
        lines = [f"{j.milliseconds:6} ms {j.stages:2} stages {j.tasks:3} tasks  {j.about}" for j in self.jobs]
        return "\n".join(lines)


@contextmanager
def watched(spark: SparkSession) -> Iterator[Watched]:
    """Filled at the end of the block."""
    before = max((job.number for job in _jobs(spark)), default=-1)
    seen = Watched()
    yield seen
    seen.jobs = [job for job in _jobs(spark) if job.number > before]


def _jobs(spark: SparkSession) -> list[Job]:
    context: Any = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()  # what is told there comes a moment later
    found = context.statusStore().jobsList(None)
    return sorted((_job(found.apply(i)) for i in range(found.size())), key=lambda job: job.number)


def _job(data: Any) -> Job:
    began, ended, about = data.submissionTime(), data.completionTime(), data.description()
    took = ended.get().getTime() - began.get().getTime() if began.isDefined() and ended.isDefined() else 0
    words = about.get() if about.isDefined() else data.name()
    ran = data.stageIds().size() - data.numSkippedStages()
    return Job(data.jobId(), " ".join(words.split())[:100], took, ran, data.numTasks() - data.numSkippedTasks())
