"""Timestamps that SQLite keeps as text: in which form, and how a bound must look to sort rightly among them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from floodmark.errors import SourceError

_FORM = re.compile(r"\d{4}-\d\d-\d\d([ T])\d\d:\d\d(?::\d\d(?:\.(\d+))?)?(Z|[+-]00:?00)?")


@dataclass(frozen=True)
class TimeForm:
    """With a suffix behind it ('Z'), a fraction sorts rightly only while all values have the same number of digits;
    without one, any number sorts rightly among the others."""

    separator: str = " "
    suffix: str = ""
    digits: int = 6

    def render(self, moment: datetime) -> str:
        """The lowest text that stands for this moment or a later one."""
        moment = moment.astimezone(UTC) if moment.tzinfo else moment
        if self.suffix:
            step = timedelta(microseconds=10 ** (6 - min(self.digits, 6)))
            day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
            moment = day + -((day - moment) // step) * step
        text = moment.replace(tzinfo=None).isoformat(sep=self.separator, timespec="seconds")
        fraction = f"{moment.microsecond:06d}"
        if not self.suffix:
            return f"{text}.{fraction}".rstrip("0").rstrip(".") if moment.microsecond else text
        return f"{text}.{fraction:<0{self.digits}}"[: len(text) + 1 + self.digits].rstrip(".") + self.suffix


def detect_form(values: list[object], table: str, column: str) -> TimeForm:
    """From the lowest and highest values of a column; refuses what does not sort like time."""
    forms = {_form_of(value, table, column) for value in values if value is not None}
    if len({(f.separator, f.suffix, f.digits if f.suffix else 0) for f in forms}) > 1:
        shown = " and ".join(repr(v) for v in values)
        raise SourceError(
            f'column "{column}" of {table} mixes forms of time that do not sort together: {shown}',
            table=table,
            column=column,
            hint="store one form, such as 2026-11-15 10:00:00.000000",
        )
    return forms.pop() if forms else TimeForm()


def _form_of(value: object, table: str, column: str) -> TimeForm:
    match = _FORM.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        numeric = isinstance(value, int | float)
        raise SourceError(
            f'column "{column}" of {table} holds {value!r}, which is not a time',
            table=table,
            column=column,
            value=value,
            hint="follow an epoch number with `by: sequence` on a column declared INTEGER"
            if numeric
            else "times are stored as text such as 2026-11-15 10:00:00.000000",
        )
    separator, fraction, suffix = match.groups()
    return TimeForm(separator, suffix or "", len(fraction or ""))


def parse_time(value: str) -> datetime:
    return datetime.fromisoformat(value)
