"""A table of a database that is a file."""

from __future__ import annotations

import os
from pathlib import Path

from floodmark.errors import TargetError
from floodmark.model.outcome import Landed, TargetState
from floodmark.model.spec import PipelineSpec
from floodmark.targets.database.session import Session
from floodmark.targets.database.target import DatabaseTarget


class FileTarget(DatabaseTarget):
    """Looking makes no file."""

    def __init__(self, spec: PipelineSpec, path: Path, table: str, prefix: str = "") -> None:
        super().__init__(spec, table, prefix)
        self._path = path

    def inspect(self, *, deep: bool = False) -> TargetState:
        self._check_file()
        if self._path.exists():
            return super().inspect(deep=deep)
        return TargetState(exists=False)

    def find(self, batch_id: str) -> Landed | None:
        return super().find(batch_id) if self._path.exists() else None

    def _check_writable(self, db: Session) -> None:
        """Asked of the file before it is opened."""

    def _check_file(self) -> None:
        """That it can be written to, and so can its folder: journals and staged rows are kept beside it."""
        folder = self._path.parent
        closed = next((p for p in (folder, self._path) if p.exists() and not os.access(p, os.W_OK)), None)
        if not folder.is_dir():
            trouble = f"there is no folder {folder}"
        elif self._path.is_dir():
            trouble = f"{self._path} is a folder, and a database file is wanted there"
        elif closed is not None:
            trouble = f"{closed} can't be written to"
        else:
            return
        raise TargetError(trouble, table=self._spec.target.table, declared_at=self._spec.at("target.connection"))
