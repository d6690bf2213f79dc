"""What answers at once must not load what is slow."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pyspark", "pandas", "pyarrow", "deltalake", "sqlalchemy")

PROBE = """
import sys
from floodmark.cli.main import main
main(sys.argv[2:])
print(*[name for name in sys.argv[1].split(",") if name in sys.modules], file=sys.stderr)
"""


def loaded(names: tuple[str, ...], *argv: str) -> list[str]:
    command = [sys.executable, "-c", PROBE, ",".join(names), *argv]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[-1].split()


@pytest.mark.parametrize("argv", [["--help"], ["run", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(argv: list[str]) -> None:
    assert loaded((*HEAVY, "rich", "pydantic", "floodmark.project"), *argv) == []
