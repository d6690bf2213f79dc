"""One policy for what may be tried again: which errors, how often, how long to wait. Sources and loads share it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import TypeVar

from floodmark.errors import FloodmarkError
from floodmark.model.spec import RetrySpec

T = TypeVar("T")

PASSING = re.compile(
    r"ConcurrentAppend|ConcurrentDelete|ConcurrentWrite|MetadataChanged|ProtocolChanged|"  # another writer of the table
    r"DELTA_CONCURRENT_(?!TRANSACTION)|DELTA_METADATA_CHANGED|CommitFailedException|"
    r"deadlock|could not serialize access|Lock wait timeout|lock timeout|statement timeout|max_statement_time|"
    r"invalid snapshot identifier|could not import the requested snapshot|"  # its holder was ended by the server
    r"connection (was )?reset|connection refused|broken pipe|connection (has been |is )?closed|"
    r"I/O error occurred while sending|Communications link failure|Socket (error|timeout)|Read timed out|"
    r"CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND|"  # a worker died with the part of a batch that it held
    r"terminating connection|server closed the connection|server has gone away|"
    r"the database system is (starting up|shutting down)|too many connections|remaining connection slots",
    re.IGNORECASE,
)
"""As databases and lakes say it, wherever it stands in a Java trace: by then there is no error class left to ask."""


def sounds_transient(error: BaseException) -> bool:
    return PASSING.search(str(error)) is not None


def retrying(spec: RetrySpec, action: Callable[[], T], tell: Callable[[str], None]) -> T:
    """The first try costs nothing: only when it fails is the library loaded that knows how to wait."""
    try:
        return action()
    except FloodmarkError as error:
        if not error.transient or spec.attempts == 1:
            raise
        return _again(spec, action, tell, error)


def _again(spec: RetrySpec, action: Callable[[], T], tell: Callable[[str], None], first: FloodmarkError) -> T:
    from stamina import retry_context

    _quiet()
    attempts = retry_context(
        on=_is_transient,
        attempts=spec.attempts,
        timeout=None,
        wait_initial=spec.wait,
        wait_max=spec.longest_wait,
        wait_jitter=spec.wait,
    )
    for attempt in attempts:
        with attempt:
            try:
                if attempt.num == 1:
                    raise first  # it was the first attempt: the library waits from there on
                return action()
            except FloodmarkError as error:
                if error.transient and attempt.num < spec.attempts:
                    why = error.message.splitlines()[0]
                    tell(f"{why}: trying again in a moment ({attempt.num + 1} of {spec.attempts})")
                raise
    raise first  # not reached: the last attempt returns or raises


def _quiet() -> None:
    """Each try is told by `tell`. The library logs it as well, which without any logging set up would be a bare word on
    the terminal; a program that has set up its own still gets it."""
    logger = logging.getLogger("stamina")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


def _is_transient(error: Exception) -> bool:
    return isinstance(error, FloodmarkError) and error.transient
