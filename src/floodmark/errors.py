"""Every error that Floodmark raises, grouped by what the operator should do.

FloodmarkError
├── ConfigError            mend the file (exit 2)
│   └── MissingExtra       install what the message names (exit 2)
├── SourceError            the source refused or lacks something
├── TargetError            the target refused or lacks something
│   └── OutcomeUnknown     a commit may or may not have landed: check, then run again
├── StateError             the state store can't be read or written
│   └── StateConflict      somebody else moved the state: run again
├── Refused                state and reality disagree: choose one of the ways out
│   └── Fallen             the source's highest value lies below the mark
├── LeaseError             somebody else works on the target table (exit 3)
│   ├── LeaseHeld
│   └── LeaseLost
├── TransformError         the user's SQL or Python failed
└── Stopped                the operator ended the run; the next one goes on
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """Where something was declared; `text` is the line itself, for showing."""

    file: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


SHORTEST_SECRET = 4
"""A password of three letters stands in half of all words: hiding them would hide the message, not the password."""


class FloodmarkError(Exception):
    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        pipeline: str | None = None,
        table: str | None = None,
        column: str | None = None,
        value: object = None,
        declared_at: Place | None = None,
        hint: str | None = None,
        transient: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.pipeline = pipeline
        self.table = table
        self.column = column
        self.value = value
        self.declared_at = declared_at
        self.hint = hint
        self.transient = transient
        """May well succeed if it is simply tried again: a connection that was cut, a deadlock, a time-out."""

    def located(self, *, pipeline: str | None = None, declared_at: Place | None = None) -> FloodmarkError:
        """Fill in what the raiser could not know; what it did know stays."""
        self.pipeline = self.pipeline or pipeline
        self.declared_at = self.declared_at or declared_at
        return self


class ConfigError(FloodmarkError):
    exit_code = 2


class MissingExtra(ConfigError):
    pass


class SourceError(FloodmarkError):
    pass


class TargetError(FloodmarkError):
    pass


class OutcomeUnknown(TargetError):
    pass


class StateError(FloodmarkError):
    pass


class StateConflict(StateError):
    pass


class Refused(FloodmarkError):
    pass


class Fallen(Refused):
    """The source's highest value, `value`, lies below the mark."""


class LeaseError(FloodmarkError):
    exit_code = 3


class LeaseHeld(LeaseError):
    pass


class LeaseLost(LeaseError):
    pass


class TransformError(FloodmarkError):
    pass


class Stopped(FloodmarkError):
    pass


def redact(text: str, secrets: Iterable[str]) -> str:
    """Secrets are never printed, logged or stored, whoever put them into a message."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return text
