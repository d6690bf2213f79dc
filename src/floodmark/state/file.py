"""State in one JSON file: for a single host, and to look at with any tool."""

from __future__ import annotations

import os
from datetime import timedelta

from floodmark.state.document import DocumentStore
from floodmark.state.locked import LockedFile


class FileStore(DocumentStore):
    """Changed under a lock that all processes of this host share."""

    def __init__(self, path: str | os.PathLike[str], *, wait: timedelta = timedelta(seconds=30)) -> None:
        super().__init__(LockedFile(path, wait))
