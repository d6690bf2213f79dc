"""Each way to commit late by itself, held open across a whole run: none loses a row, and all do without the look."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.races import LOOK, NO_LOOK, By, RaceLab
from tests.storm_ends import DeltaEnd
from tests.traps import DRAWN_BY_APPLICATION, HARMLESS, Traps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CURSORS: list[By] = ["timestamp", "sequence"]
AT_ONCE = f"{LOOK}, wait: 0s"
"""A gate opens only when the run is over: there is nothing to wait for."""


@pytest.mark.parametrize("by", CURSORS)
def test_no_way_to_commit_late_loses_a_row(race_lab: RaceLab, by: By) -> None:
    lost = Traps(race_lab, by, AT_ONCE).run()
    assert lost <= ({DRAWN_BY_APPLICATION} if by == "sequence" else set())


@pytest.mark.parametrize("by", CURSORS)
def test_every_way_to_commit_late_loses_a_row_without_the_look(race_lab: RaceLab, by: By) -> None:
    traps = Traps(race_lab, by, NO_LOOK)
    assert traps.run() == set(traps.names) - HARMLESS.get((race_lab.kind, by), set())


def test_ids_that_the_application_draws_take_a_wait_for_every_transaction(
    tmp_path: Path, pg_db: str, spark: SparkSession
) -> None:
    root = tmp_path / "project"
    lab = RaceLab.into(DeltaEnd(root), root, "postgres", pg_db, spark)
    option = f"{AT_ONCE}, fence: transactions"
    assert Traps(lab, "sequence", option, only=DRAWN_BY_APPLICATION).run() == set()
