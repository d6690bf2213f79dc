"""`floodmark demo` as a new user runs it: real Spark, real Delta, a real SIGKILL."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def test_the_demo_ends_with_equal_source_and_target(tmp_path: Path) -> None:
    stage = tmp_path / "stage"
    done = subprocess.run(
        [sys.executable, "-m", "floodmark.cli.main", "demo", "--dir", str(stage)],
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "✗" not in told
    assert re.search(r"✓ orders  .*100,000 inserted", done.stdout), told
    assert "slice 3 of 3" in done.stdout
    assert "✓ just what the shop itself counted: 1,500 updated, 312 inserted, 20 events" in done.stdout
    assert done.stdout.count("nothing new (") == 2
    assert "✓ killed with SIGKILL in the middle of the load" in done.stdout
    assert "✓ just what the shop itself counted: 1,000 updated, 250 inserted, 15 events" in done.stdout
    assert "✓ 100,562 orders and 5,035 events: source and target are equal, row by row" in done.stdout
    assert (stage / "floodmark.yml").is_file()
