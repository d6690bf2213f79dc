"""Which errors are tried again, how often, and what is told."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest

from floodmark.errors import ConfigError, SourceError
from floodmark.model.spec import RetrySpec
from floodmark.retries import retrying, sounds_transient

SPEC = RetrySpec(attempts=4, wait=timedelta(milliseconds=1), longest_wait=timedelta(milliseconds=2))


class Flaky:
    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0
        self.told: list[str] = []

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def cut() -> SourceError:
    return SourceError("the connection was cut\nsecond line", transient=True)


def test_what_passes_is_tried_again_and_told() -> None:
    flaky = Flaky(cut(), cut())
    assert retrying(SPEC, flaky, flaky.told.append) == "done"
    assert flaky.calls == 3
    assert flaky.told == [
        "the connection was cut: trying again in a moment (2 of 4)",
        "the connection was cut: trying again in a moment (3 of 4)",
    ]


def test_the_last_error_is_raised_after_all_attempts() -> None:
    last = cut()
    flaky = Flaky(cut(), cut(), cut(), last)
    with pytest.raises(SourceError) as raised:
        retrying(SPEC, flaky, flaky.told.append)
    assert raised.value is last
    assert (flaky.calls, len(flaky.told)) == (4, 3)


@pytest.mark.parametrize("error", [SourceError("no such column"), ConfigError("wrong"), KeyError("a bug")])
def test_what_does_not_pass_is_raised_at_once(error: Exception) -> None:
    flaky = Flaky(error)
    with pytest.raises(type(error)):
        retrying(SPEC, flaky, flaky.told.append)
    assert (flaky.calls, flaky.told) == (1, [])


def test_a_fatal_error_ends_the_tries() -> None:
    flaky = Flaky(cut(), SourceError("the table is gone"))
    with pytest.raises(SourceError, match="gone"):
        retrying(SPEC, flaky, flaky.told.append)
    assert flaky.calls == 2


def test_one_attempt_is_one() -> None:
    flaky = Flaky(cut())
    with pytest.raises(SourceError):
        retrying(RetrySpec(attempts=1), flaky, flaky.told.append)
    assert flaky.calls == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict detected", True),
        ("io.delta.exceptions.ConcurrentAppendException: files were added", True),
        ("[DELTA_CONCURRENT_TRANSACTION] another stream uses the same id", False),
        ("Caused by: org.postgresql.util.PSQLException: An I/O error occurred while sending to the backend.", True),
        ("FATAL: terminating connection due to administrator command", True),
        ("Caused by: java.net.SocketException: Connection reset", True),
        ("ERROR: could not serialize access due to concurrent update", True),
        ("Deadlock found when trying to get lock", True),
        ("division by zero", False),
        ("column x does not exist", False),
    ],
)
def test_what_databases_and_delta_say(text: str, expected: bool) -> None:
    assert sounds_transient(RuntimeError(text)) is expected


def test_nothing_is_printed_beside_what_is_told() -> None:
    """In a process of its own: pytest sets logging up, which hides what a terminal would show."""
    code = (
        "from tests.unit.test_retry_policy import SPEC, Flaky, cut\n"
        "from floodmark.retries import retrying\n"
        "print(retrying(SPEC, Flaky(cut(), cut()), print))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert said.stderr == ""
    assert said.stdout.splitlines()[-1] == "done"
