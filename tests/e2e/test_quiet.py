"""Where there is nothing to do the answer comes at once: no JVM, and no import that the answer can do without."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.lab import Lab, ok
from tests.services import NO_JAVA, run_cli

PROBE = """
import sys
before = set(sys.modules)
from floodmark.cli.main import main
code = main(sys.argv[1:])
print(*sorted(set(sys.modules) - before), file=sys.stderr)
sys.exit(code)
"""

NEEDED = {
    "floodmark",
    # The command line, and what it is made of.
    *("typer", "annotated_doc", "shellingham"),
    # The project file and the records of the ledger.
    *("ruamel", "pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"),
    # The head of the target.
    *("deltalake", "arro3"),
}
DRIVERS = {
    "sqlite": {"sqlite3"},
    "postgres": {"psycopg", "psycopg_binary", "cython_runtime"},
    "mariadb": {"pymysql", "cryptography"},
}
FOR_A_LOAD = {"floodmark.targets.delta.load", "floodmark.targets.delta.care", "floodmark.backfill"}


@pytest.fixture
def loaded(lab: Lab) -> Lab:
    """Through Python; the commands then run in processes of their own."""
    lab.fill(20)
    project = lab.project()
    ok(project.run("orders"))
    project.close()
    return lab


@pytest.mark.parametrize("words", ["plan", "status", "run orders"])
def test_only_what_the_answer_needs_is_imported(loaded: Lab, words: str) -> None:
    """A budget of names, since seconds are the machine's: whoever adds one here has weighed what it costs."""
    modules = imported(loaded.root, *words.split())
    found = {name.partition(".")[0] for name in modules}
    libraries = {name for name in found - sys.stdlib_module_names if not name.startswith("_")}
    assert libraries - NEEDED - DRIVERS[loaded.kind] == set()
    if loaded.kind == "sqlite":
        assert not {"asyncio", "ssl", "http"} & found  # drivers of servers bring them
    assert modules & FOR_A_LOAD == set()


def imported(folder: Path, *words: str) -> set[str]:
    command = [sys.executable, "-c", PROBE, *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert words[0] != "run" or "nothing new" in done.stdout
    return set(done.stderr.splitlines()[-1].split())


def test_rows_loaded_ahead_of_the_mark_are_recognised_without_a_jvm(server_lab: Lab) -> None:
    """A run right after a load: the youngest rows are loaded and not proven yet, so they are looked at again."""
    project = server_lab.project(change="{by: timestamp, column: updated_at, fence: off, delay: 1h}")
    now = datetime.now(UTC)
    server_lab.insert(*((i, "v", f"{now - i * timedelta(minutes=20):%Y-%m-%d %H:%M:%S.%f}") for i in range(1, 7)))
    ok(project.run("orders"))
    state = project.state("orders")
    project.close()
    assert state is not None
    assert state.ahead is not None
    assert state.ahead.count > 0
    assert "nothing new" in run_cli("run", "orders", cwd=server_lab.root, env=NO_JAVA).stdout
    assert not {"pyspark", "py4j"} & imported(server_lab.root, "run", "orders")
