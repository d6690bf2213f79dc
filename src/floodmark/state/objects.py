"""State in one JSON object of a bucket: for runners on several hosts that share no disk and no database."""

from __future__ import annotations

import random
import time
from datetime import timedelta
from typing import Any

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    GenericError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)
from obstore.store import from_url

from floodmark.errors import ConfigError, StateError, redact
from floodmark.state.document import DocumentStore, Edit

KEPT_RUNS = 50
"""Per pipeline; fewer than in a file, since each change sends the whole object over the network."""

PAUSE = 0.02
"""Seconds, about, before a change that lost the race is made again; doubled each time, up to LONGEST_PAUSE."""
LONGEST_PAUSE = 0.5

HINTS: dict[type[Exception], str] = {
    UnauthenticatedError: "check the credentials: they come from the environment, as the cloud's own tools read them",
    PermissionDeniedError: "the credentials may not do this: they need to get and put this one object",
}


class ObjectStore(DocumentStore):
    """Changed by a put that names the version it replaces, so no lock is needed. `options` are obstore's, for example
    `region` or `endpoint`; what is not given comes from the environment."""

    def __init__(self, url: str, *, wait: timedelta = timedelta(seconds=30), **options: Any) -> None:
        super().__init__(BucketObject(url, wait, options), KEPT_RUNS)


class BucketObject:
    def __init__(self, url: str, wait: timedelta, options: dict[str, Any]) -> None:
        self.where = url
        folder, _, self._key = url.rpartition("/")
        if not self._key or folder.endswith((":", "/")):
            raise ConfigError(
                f"{url} names no object", hint="a bucket and a path, for example s3://bucket/floodmark/state.json"
            )
        self._wait = wait.total_seconds()
        self._secrets = [
            str(value) for name, value in options.items() if any(w in name for w in ("key", "secret", "tok"))
        ]
        client = {"allow_http": str(options.get("endpoint", "")).startswith("http://"), "timeout": wait}
        given = {"client_options": client} if client["allow_http"] else {}
        try:
            self._bucket = from_url(folder, config=options or None, retry_config={"retry_timeout": wait}, **given)  # type: ignore[call-overload]
        except UnknownConfigurationKeyError as error:
            raise ConfigError(f"state in {folder}: {_first_line(error)}", hint="the settings are obstore's") from error
        except (BaseError, ValueError) as error:
            raise ConfigError(f"{folder} can't be opened: {self._said(error)}") from error

    def read(self) -> bytes | None:
        return self._read()[0]

    def change(self, edit: Edit) -> None:
        deadline, pause = time.monotonic() + self._wait, PAUSE
        content, version = self._read()
        while True:
            changed = edit(content)
            if changed is None or self._put(changed, version):
                return
            content, version = self._read()
            if content == changed:
                # It was our own put that went before: it was sent again because its answer got lost.
                return
            if time.monotonic() > deadline:
                raise StateError(
                    f"others have changed {self.where} all the time for {self._wait:g} s",
                    hint="give busy pipelines a state of their own, or use a database",
                    transient=True,
                )
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - so that two don't meet again
            pause = min(2 * pause, LONGEST_PAUSE)

    def _read(self) -> tuple[bytes | None, dict[str, str] | None]:
        """The content and its version, which are of one moment."""
        try:
            found = obstore.get(self._bucket, self._key)
            names = {"e_tag": found.meta["e_tag"], "version": found.meta["version"]}
            return bytes(found.bytes()), {name: value for name, value in names.items() if value is not None}
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise StateError(f"{self.where} can't be read: there is no such bucket", hint="create it") from error
            return None, None
        except BaseError as error:
            raise self._refusal("read", error) from error

    def _put(self, content: bytes, version: dict[str, str] | None) -> bool:
        """False when somebody else was quicker."""
        try:
            obstore.put(self._bucket, self._key, content, mode="create" if version is None else version)  # type: ignore[arg-type]
        except (AlreadyExistsError, PreconditionError):
            return False
        except FileNotFoundError as error:
            if version is not None:
                # Deleted since it was read.
                return False
            raise StateError(f"{self.where} can't be written: there is no such bucket", hint="create it") from error
        except BaseError as error:
            raise self._refusal("written", error) from error
        return True

    def _refusal(self, doing: str, error: Exception) -> StateError:
        hint = next((words for kind, words in HINTS.items() if isinstance(error, kind)), None)
        return StateError(
            f"{self.where} can't be {doing}: {self._said(error)}",
            hint=hint or "check that the object store can be reached, and the region or endpoint",
            transient=isinstance(error, GenericError),
        )

    def _said(self, error: Exception) -> str:
        return redact(_first_line(error), self._secrets)


def _first_line(error: Exception) -> str:
    """obstore tells the whole chain of causes below it, for its own developers."""
    return str(error).strip().splitlines()[0][:400]
