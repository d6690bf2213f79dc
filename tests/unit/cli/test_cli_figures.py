from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from floodmark.cli.figures import (
    loaded_rows,
    show_count,
    show_moment,
    show_position,
    show_rows,
    show_seconds,
    show_span,
)
from floodmark.model.outcome import Rows
from floodmark.model.position import Position


def test_unknown_is_a_dash_and_zero_is_a_zero() -> None:
    assert [show_count(None), show_position(None), show_seconds(None), show_span(None), show_moment(None)] == ["–"] * 5
    assert show_count(0) == "0"
    assert show_rows(None) == "– rows"


def test_counts_have_separators_and_one_row_is_a_row() -> None:
    assert show_count(31_204_113) == "31,204,113"
    assert [show_rows(1), show_rows(2)] == ["1 row", "2 rows"]
    assert show_position(Position.before(81_204_113)) == "81,204,113"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.002, "<0.01 s"), (0.04, "0.04 s"), (2.61, "2.6 s"), (41.2, "41.2 s"), (192, "3m 12s"), (7_500, "2h 5m")],
)
def test_seconds(seconds: float, text: str) -> None:
    assert show_seconds(seconds) == text


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(seconds=-3), "0s"),
        (timedelta(minutes=3, seconds=12), "3m 12s"),
        (timedelta(days=1, hours=10, minutes=4), "1d 10h"),
        (timedelta(hours=2, seconds=4), "2h"),
    ],
)
def test_spans(span: timedelta, text: str) -> None:
    assert show_span(span) == text


def test_a_moment_names_its_date_unless_it_is_today() -> None:
    moment = datetime(2026, 11, 15, 10, 3, tzinfo=UTC)
    assert show_moment(moment, now=moment + timedelta(hours=1)) == "10:03"
    assert show_moment(moment, now=moment + timedelta(days=1), seconds=True) == "2026-11-15 10:03:00"


def test_loaded_rows_stay_unknown() -> None:
    assert loaded_rows(Rows(read=5)) is None
    assert loaded_rows(Rows(), nothing_new=True) == 0
    assert loaded_rows(Rows(inserted=2, updated=3)) == 5
