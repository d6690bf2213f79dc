"""The command line, killed by SIGKILL at the end of a function that is no step of a port:

python -m tests.killed_inside floodmark.targets.database.promote:Promotion.run -- run orders
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any


def run_killed(place: str, *command: str, cwd: Path) -> None:
    """Until it is killed there."""
    with (cwd / "killed.log").open("w") as log:
        done = subprocess.run(
            [sys.executable, "-m", "tests.killed_inside", place, "--", *command],
            cwd=cwd,
            env={**os.environ, "COLUMNS": "160", "NO_COLOR": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            timeout=300,
            check=False,
        )
    assert done.returncode == -signal.SIGKILL, (cwd / "killed.log").read_text()


def main(place: str, command: list[str]) -> int:
    from floodmark.cli.main import main as floodmark

    module, _, name = place.partition(":")
    owner, _, method = name.rpartition(".")
    inside: Any = importlib.import_module(module)
    inside = getattr(inside, owner) if owner else inside
    original = getattr(inside, method)

    def killed(*args: Any, **options: Any) -> None:
        original(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(inside, method, killed)
    return floodmark(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[3:]))
