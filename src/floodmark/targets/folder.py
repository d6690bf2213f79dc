"""A folder that a table shall be in."""

from __future__ import annotations

import os
from pathlib import Path

from floodmark.errors import Place, TargetError


def check_folder(folder: Path, table: str | None = None, declared_at: Place | None = None) -> None:
    """That it can be written to, or made: known before anything is read."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        trouble = "can't be written to" if there.is_dir() else "is not a folder"
        raise TargetError(f"{there} {trouble}", table=table, declared_at=declared_at)
