from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

NOBODY = 65534


@contextmanager
def _as_nobody() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def without_rights() -> Callable[[], AbstractContextManager[None]]:
    """Root may write anywhere, so rights are tested as somebody else."""
    return _as_nobody


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Like tmp_path, but its parents let everybody through."""
    folder = Path(tempfile.mkdtemp(prefix="floodmark-"))
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o777)
    shutil.rmtree(folder)
