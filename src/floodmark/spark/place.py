"""Where this process runs: on a machine that stays, or in a place that is thrown away after the run."""

from __future__ import annotations

import os
from pathlib import Path

MARKS = ("CI", "KUBERNETES_SERVICE_HOST", "container", "AWS_LAMBDA_FUNCTION_NAME")
FILES = ("/.dockerenv", "/run/.containerenv")


def is_thrown_away() -> bool:
    """In CI and in containers nothing is left behind for a next run, which would not find it."""
    return any(os.environ.get(name) for name in MARKS) or any(Path(name).exists() for name in FILES)


def wanted(choice: str) -> bool:
    """What `auto | on | off` comes to here."""
    return choice == "on" or (choice == "auto" and not is_thrown_away())
