"""Care of an Iceberg table: fewer files, the same rows, and no head that is lost by it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.iceberg import CONNECTION, IcebergLab, Lake, table_at
from tests.lab import ok

from floodmark.model.care import Care
from floodmark.model.ledger import PipelineState
from floodmark.project import Project
from floodmark.targets.iceberg.target import IcebergTarget
from floodmark.testing.target_suite import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lab(tmp_path: Path, spark: SparkSession) -> IcebergLab:
    return IcebergLab(tmp_path / "project", "sqlite", "", spark)


def cared(lab: IcebergLab, maintenance: str, mode: str = "upsert") -> Project:
    keys = ", keys: [id]" if mode == "upsert" else ""
    target = f"{{connection: lake, table: orders, mode: {mode}{keys}, maintenance: {{{maintenance}}}}}"
    return lab.project(mode=mode, target=target)


def load_one(lab: IcebergLab, project: Project, number: int) -> Any:
    lab.fill(1, f"2026-01-01 10:{number // 60:02}:{number % 60:02}", start=number)
    return ok(project.run("orders"))


def data_files(lab: IcebergLab) -> int:
    return len(table_at(Path(lab.table)).inspect.data_files())


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_many_small_files_become_one(lab: IcebergLab, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floodmark.care.caretaker.MANY", 6)
    project = cared(lab, "compact: off, vacuum: off", mode)
    for number in range(1, 8):
        load_one(lab, project, number)
    assert data_files(lab) >= 7
    said = load_one(lab, cared(lab, "compact: 1h, vacuum: off", mode), 8).notices
    assert any("compacted: " in notice for notice in said), said
    assert data_files(lab) == 1
    lab.assert_equal()
    assert load_one(lab, cared(lab, "compact: 1h, vacuum: off", mode), 9).notices == ()
    lab.assert_equal()


def test_heads_survive_that_all_earlier_snapshots_expire(lab: IcebergLab) -> None:
    project = cared(lab, "compact: 0s, vacuum: 0s, keep: 0s")
    for number in range(1, 5):
        load_one(lab, project, number)
    before = project.state("orders")
    assert before is not None
    assert len(table_at(Path(lab.table)).metadata.snapshots) <= 2
    project.store.delete("orders")
    again = ok(project.run("orders"))
    assert "the state was rebuilt from the target" in again.notices
    after = project.state("orders")
    assert after is not None
    assert (after.mark, after.head and after.head.ordinal) == (before.mark, before.head and before.head.ordinal)
    load_one(lab, project, 6)
    lab.assert_equal()


def test_the_head_of_a_pipeline_that_rests_survives_the_others_care(tmp_path: Path, spark: SparkSession) -> None:
    lake = Lake(tmp_path, spark)
    resting, other = (lake.begin("append", maintenance={"keep": "0s"}) for _ in range(2))
    other.spec = other.spec.model_copy(update={"name": "others"})
    other.target = IcebergTarget(CONNECTION, other.spec, tmp_path)
    resting.load([(1, "a", 1)])
    other.load([(2, "b", 1)])
    other.load([(3, "c", 2)])
    before = resting.target.inspect()
    now = datetime.now(UTC) + timedelta(hours=1)
    for _ in range(2):
        other.target.care(other.spark, Care("vacuum", PipelineState(pipeline="others"), now))
        assert len(lake.table().metadata.snapshots) == 1
        after = resting.target.inspect()
        assert (after.landed[0].head, after.top_ordinal) == (before.landed[0].head, 1)
        assert other.target.inspect().landed[0].head.batch == f"b{other.ordinal}"
        other.load([(4, "d", 3)])
    again = resting.spark.createDataFrame([(9, "x", 9)], COLUMNS)
    assert resting.attempt(again, ordinal=1, batch="again") is None
