"""Python starts with this when a test has set another day with libfaketime, which trips over two things.

It turns the moment at which a sleep shall end into one of its own days, though sleeps go by the clock that counts from
the start of the machine; and Java, started from here, needs that clock changed too, while Python needs it as it is."""

import os
import select
import time


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


time.sleep = _sleep  # type: ignore[assignment]
os.environ.pop("DONT_FAKE_MONOTONIC", None)
