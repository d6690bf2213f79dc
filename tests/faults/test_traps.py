"""Each way to commit late by itself, held open across a whole run: none loses a row, and all do without the look."""

from __future__ import annotations

import pytest
from tests.races import NO_LOOK, By, RaceLab
from tests.traps import HARMLESS, Traps

CURSORS: list[By] = ["timestamp", "sequence"]


@pytest.mark.parametrize("by", CURSORS)
def test_no_way_to_commit_late_loses_a_row(race_lab: RaceLab, by: By) -> None:
    assert Traps(race_lab, by).run() == set()


@pytest.mark.parametrize("by", CURSORS)
def test_every_way_to_commit_late_loses_a_row_without_the_look(race_lab: RaceLab, by: By) -> None:
    traps = Traps(race_lab, by, NO_LOOK)
    assert traps.run() == set(traps.names) - HARMLESS.get((race_lab.kind, by), set())
