"""A position: a cut in the source's own order, just before a value or just beyond it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

Scalar = datetime | int | str

MICROSECOND = timedelta(microseconds=1)
LAST_MOMENT = datetime.max.replace(tzinfo=UTC)
"""Some write it for "never": there is no moment after it to step up to."""


@dataclass(frozen=True)
class Position:
    """One value per cursor column. Text has no successor that Python could name (the database's collation orders it),
    so a cut after a text value, or after the last moment there is, keeps the value and says `beyond`; integers and
    timestamps are simply stepped up."""

    values: tuple[Scalar, ...]
    beyond: bool = False

    @classmethod
    def before(cls, *values: Scalar) -> Position:
        return cls(values)

    @classmethod
    def after(cls, *values: Scalar) -> Position:
        last = values[-1]
        if isinstance(last, str) or last == LAST_MOMENT:
            return cls(values, beyond=True)
        step: Scalar = last + MICROSECOND if isinstance(last, datetime) else last + 1
        return cls((*values[:-1], step))

    def to_json(self) -> dict[str, Any]:
        parts = [_scalar_to_json(v) for v in self.values]
        form: dict[str, Any] = parts[0] if len(parts) == 1 else {"tuple": parts}
        return {**form, "beyond": True} if self.beyond else form

    @classmethod
    def from_json(cls, form: dict[str, Any]) -> Position:
        parts = form.get("tuple") or [{k: v for k, v in form.items() if k != "beyond"}]
        return cls(tuple(_scalar_from_json(p) for p in parts), beyond=bool(form.get("beyond", False)))

    @property
    def is_comparable(self) -> bool:
        """False for text, whose order only the source knows."""
        return not any(isinstance(v, str) for v in self.values)

    def precedes(self, other: Position) -> bool:
        if not (self.is_comparable and other.is_comparable):
            raise ValueError("text positions are compared in the database, never here")
        return (self.values, self.beyond) < (other.values, other.beyond)

    def __str__(self) -> str:
        shown = ", ".join(_scalar_text(v) for v in self.values)
        return f"beyond {shown}" if self.beyond else shown


def has_passed(position: Position | None, reached: Position | None) -> bool:
    """At or beyond it. Nobody can say so of text."""
    if position is None or reached is None or not (position.is_comparable and reached.is_comparable):
        return False
    return not position.precedes(reached)


def earlier(one: Position | None, other: Position | None) -> Position | None:
    """None is the beginning. Of two texts nobody can say: the first."""
    if one is None or other is None:
        return None
    return other if has_passed(one, other) else one


def _read(form: object) -> object:
    return Position.from_json(form) if isinstance(form, dict) else form


def _write(position: Position) -> dict[str, Any]:
    return position.to_json()


StoredPosition = Annotated[
    Position, BeforeValidator(_read), PlainSerializer(_write), WithJsonSchema({"type": "object"})
]
"""A position as a field of a stored record: one JSON form, in ledger and head alike."""


def _scalar_to_json(value: Scalar) -> dict[str, Any]:
    if isinstance(value, datetime):
        return {"timestamp": value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"}
    return {"integer": value} if isinstance(value, int) else {"text": value}


def _scalar_from_json(form: dict[str, Any]) -> Scalar:
    match form:
        case {"timestamp": str(text)}:
            return datetime.fromisoformat(text).astimezone(UTC)
        case {"integer": int(number)}:
            return number
        case {"text": str(text)}:
            return text
    raise ValueError(f"not a position: {form}")


def _scalar_text(value: Scalar) -> str:
    if isinstance(value, datetime):
        shown = value.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
        return shown.rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else value
