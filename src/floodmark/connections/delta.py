"""Where Delta tables are, for Spark and for the `deltalake` package alike."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import Field

from floodmark.errors import ConfigError, Place
from floodmark.model.spec import ConnectionOptions

LONGEST = 255
"""Bytes of a folder's name on most file systems."""


class DeltaConnection(ConnectionOptions):
    """A folder of Delta tables."""

    type: Literal["delta"] = "delta"
    path: str = Field(description="Folder or object store address; a relative one starts at the YAML file.")

    @property
    def is_local(self) -> bool:
        return "://" not in self.path

    def folder(self, root: Path) -> str:
        return str((root / self.path).resolve()) if self.is_local else self.path.rstrip("/")

    def table_path(self, root: Path, table: str, option: str, declared_at: Place | None) -> str:
        """`option` is the one that names the table."""
        if ".." in Path(table).parts:
            raise ConfigError(f"the table {table} leaves the connection's folder", declared_at=declared_at)
        path = f"{self.folder(root).rstrip('/')}/{table}"
        _refuse_folder(path if self.is_local else table, table, option, declared_at)
        return path


def _refuse_folder(path: str, table: str, option: str, declared_at: Place | None) -> None:
    """Spark and the `deltalake` package must mean the same folder: in these, the second one looks elsewhere."""
    misread = re.search(r"[\\?#\x00-\x1f\x7f]|%[0-9A-Fa-f]{2}", path)
    trouble = f"has {misread[0]!r} in it" if misread else ""
    if any(len(part.encode()) > LONGEST for part in path.split("/")):
        trouble = f"is longer than {LONGEST} bytes"
    if trouble:
        raise ConfigError(
            f"{path} {trouble}, so it can't be the folder of a Delta table",
            table=table,
            declared_at=declared_at,
            hint=f"choose another `{option}` or connection path; blanks, dots, quotes and all letters will do",
        )
