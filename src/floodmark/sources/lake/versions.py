"""The versions that a table keeps, and which of them is meant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from floodmark.errors import ConfigError
from floodmark.javawords import first_line
from floodmark.ports import AsOf

_GONE = re.compile(r"FILE_NOT_EXIST|FILE_NOT_FOUND|FileNotFoundException|NotFoundException: File|No such file")
SHOWN = 5


def is_gone(error: BaseException) -> bool:
    """A file that the table's metadata speaks of, and that nobody has any more."""
    return _GONE.search(f"{error}\n{first_line(error)}") is not None


def is_forgotten(error: BaseException) -> bool:
    """A commit that is still in the log, but too old for what is left of it: only Spark knows."""
    return "Cannot time travel" in str(error)


@dataclass(frozen=True)
class Version:
    number: int
    at: datetime

    def __str__(self) -> str:
        return f"{self.number} ({self.at:%Y-%m-%d %H:%M:%S} UTC)"


@dataclass(frozen=True)
class Versions:
    known: Sequence[Version]
    """Oldest first."""

    def find(self, as_of: AsOf, table: str) -> int:
        if as_of.version is not None:
            found = [v for v in self.known if v.number == as_of.version]
            trouble = f"there is no version {as_of.version} of {table}"
        else:
            found = [v for v in self.known if as_of.moment is not None and v.at <= as_of.moment]
            trouble = f"no version of {table} is as old as {as_of}"
        if not found:
            raise ConfigError(trouble, table=table, hint=self._listed(self.known))
        return found[-1].number

    def gone(self, version: int, kept_from: int | None, table: str) -> ConfigError:
        """`kept_from` is the oldest one that is known to be whole."""
        whole = self.known if kept_from is None else [v for v in self.known if v.number >= kept_from]
        left = [v for v in whole if v.number != version]
        return ConfigError(
            f"version {version} of {table} can't be read any more: some of its files were removed",
            table=table,
            hint=self._listed(left),
        )

    def _listed(self, versions: Sequence[Version]) -> str:
        if not versions:
            return "no older version is left"
        if len(versions) <= SHOWN:
            return f"versions there: {', '.join(map(str, versions))}"
        return f"versions there: {len(versions)}, from {versions[0]} to {versions[-1]}"
