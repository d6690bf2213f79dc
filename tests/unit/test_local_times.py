"""What a time without a zone means: there and back again, and refused where a zone does not have it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from floodmark.errors import SourceError
from floodmark.model.table import Column, Cursor
from floodmark.sources.sql import local_time, utc_time

BERLIN = Cursor((Column("at", "timestamp", "timestamp"),), "Europe/Berlin")


@pytest.mark.parametrize(
    ("wall", "meant"),
    [
        (datetime(2026, 1, 1, 12), datetime(2026, 1, 1, 11, tzinfo=UTC)),
        (datetime(2026, 7, 1, 12), datetime(2026, 7, 1, 10, tzinfo=UTC)),
        (datetime(2026, 10, 25, 2, 30), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
    ],
    ids=["winter", "summer", "the first of two"],
)
def test_there_and_back(wall: datetime, meant: datetime) -> None:
    assert utc_time(wall, BERLIN) == meant
    assert local_time(meant, BERLIN) == wall


def test_a_time_that_was_skipped_in_spring_is_refused() -> None:
    """A window that began there would lose its neighbours."""
    with pytest.raises(SourceError, match=r'"at" holds 2026-03-29 02:30:00, a time that Europe/Berlin does not have'):
        utc_time(datetime(2026, 3, 29, 2, 30), BERLIN)
