"""Bounds as text sort among values as text just as their moments do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.errors import SourceError
from floodmark.sources.sqlite.time import TimeForm, detect_form, parse_time

MOMENTS = st.datetimes(datetime(1800, 1, 1), datetime(2200, 1, 1))


def shown(moment: datetime, form: TimeForm, digits: int) -> str:
    """As an application might have written it."""
    text = moment.isoformat(sep=form.separator, timespec="microseconds")[: 20 + digits if digits else 19]
    return text + form.suffix


@given(bound=MOMENTS, row=MOMENTS, digits=st.integers(0, 6), separator=st.sampled_from([" ", "T"]))
def test_without_suffix_any_number_of_digits_sorts(bound: datetime, row: datetime, digits: int, separator: str) -> None:
    form = TimeForm(separator)
    text = shown(row, form, digits)
    assert (text >= form.render(bound)) == (parse_time(text) >= bound)


@given(bound=MOMENTS, row=MOMENTS, digits=st.integers(0, 6), suffix=st.sampled_from(["Z", "+00:00"]))
def test_with_a_suffix_the_bound_has_the_digits_of_the_rows(
    bound: datetime, row: datetime, digits: int, suffix: str
) -> None:
    form = TimeForm("T", suffix, digits)
    text = shown(row, form, digits)
    assert (text >= form.render(bound.replace(tzinfo=UTC))) == (parse_time(text) >= bound.replace(tzinfo=UTC))


@given(row=MOMENTS)
def test_a_row_lies_below_the_cut_beyond_it(row: datetime) -> None:
    form = TimeForm(" ", "", 6)
    assert shown(row, form, 6) < form.render(row + timedelta(microseconds=1))


@pytest.mark.parametrize(
    "value", [1_800_000_000, 2460000.5, "yesterday", "2026-01-01", "2026-01-01 10:00:00+02:00", b"x"]
)
def test_what_is_no_time_is_refused_by_name(value: object) -> None:
    with pytest.raises(SourceError, match='column "u" of t holds'):
        detect_form(value, "t", "u")
