"""Timestamps that SQLite keeps as text: in which form, and how a bound must look to sort rightly among them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from floodmark.errors import SourceError

_FORM = re.compile(r"\d{4}-\d\d-\d\d([ T])\d\d:\d\d(?::\d\d(?:\.(\d+))?)?(Z|[+-]00:?00)?")


EXAMPLE = datetime(2026, 11, 15, 10, 0, 0, 120000)


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

    def misfit(self, name: str) -> str:
        """A condition on values of another form than this one."""
        tests = [f"typeof({name}) <> 'text'", f"substr({name}, 11, 1) <> '{self.separator}'"]
        if self.suffix:
            length = 19 + (self.digits + 1 if self.digits else 0) + len(self.suffix)
            tests += [f"length({name}) <> {length}", f"substr({name}, -{len(self.suffix)}) <> '{self.suffix}'"]
        else:
            tests += [
                f"substr({name}, 12) GLOB '*[^0-9:.]*'",
                f"(instr({name}, '.') > 0 AND length({name}) - instr({name}, '.') > 6)",
            ]
        return f"{name} IS NOT NULL AND ({' OR '.join(tests)})"


def detect_form(value: object, table: str, column: str) -> TimeForm:
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


def misfitting(value: object, form: TimeForm, table: str, column: str) -> SourceError:
    return SourceError(
        f'column "{column}" of {table} holds {value!r}, which does not sort with {form.render(EXAMPLE)!r}',
        table=table,
        column=column,
        value=value,
        hint="store one form, with at most 6 digits of a second, such as 2026-11-15 10:00:00.000000",
    )


def parse_time(value: str) -> datetime:
    return datetime.fromisoformat(value)
