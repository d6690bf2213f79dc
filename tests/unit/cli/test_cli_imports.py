"""What answers at once must not load what is slow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from floodmark.cli.demo_shop import PROJECT, Shop

HEAVY = ("pyspark", "pandas", "pyarrow")

PROBE = """
import sys
from floodmark.cli.main import main
assert main(sys.argv[2:]) == 0
print(*[name for name in sys.argv[1].split(",") if name in sys.modules], file=sys.stderr)
"""


def loaded(names: tuple[str, ...], *argv: str) -> list[str]:
    command = [sys.executable, "-c", PROBE, ",".join(names), *argv]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[-1].split()


@pytest.mark.parametrize("argv", [["--help"], ["run", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(argv: list[str]) -> None:
    assert loaded((*HEAVY, "rich", "deltalake", "floodmark.opening", "floodmark.project"), *argv) == []


@pytest.mark.parametrize("argv", [["plan"], ["status"], ["history", "orders"], ["state", "list"], ["validate"]])
def test_looking_starts_no_spark(argv: list[str], tmp_path: Path) -> None:
    """On the real engine: without a lake there is nothing that could hide behind a cache."""
    Shop(tmp_path / "shop.db").open(orders=100, events=10)
    (tmp_path / "floodmark.yml").write_text(PROJECT)
    assert loaded((*HEAVY, "rich"), *argv, "-f", str(tmp_path / "floodmark.yml")) == []
