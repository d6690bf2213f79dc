"""A state that can't be read or written, as a user sees it: a clear error, no traceback, and the old state stays."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.lab import Lab
from tests.services import run_cli

from floodmark.model.ledger import FORMAT, PipelineState
from floodmark.stores import create_state_store
from floodmark.testing.store_suite import a_state

STATES = {"file": ("file:kept/state.json", "state.json"), "sqlite": ("sqlite:///kept/state.db", "state.db")}
COMMANDS = (["status"], ["run", "orders"])
"""One that only reads, and one that would write."""

ROOM = 512 * 1024
"""Of the small disk: enough for SQLite to open its files."""


@pytest.fixture(params=STATES)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Lab:
    """A source with rows and a state with something to lose; the store has a folder of its own."""
    lab = Lab(tmp_path / "project", "sqlite")
    lab.state = STATES[request.param][0]
    lab.fill(3)
    lab.write()
    with closing(create_state_store(lab.state, root=lab.root)) as store:
        store.save(kept_state())
    return lab


def kept_state() -> PipelineState:
    return a_state(intent=None, look=None, identity={}, metadata={"owner": "shop team", "filler": "x" * 3000})


def file_of(lab: Lab) -> Path:
    return lab.root / "kept" / STATES[lab.state.partition(":")[0]][1]


def stored(lab: Lab) -> dict[str, Any]:
    """As the next command sees it."""
    form: dict[str, Any] = json.loads(run_cli("state", "get", "orders", "--json", cwd=lab.root).stdout)
    return form


def said(done: subprocess.CompletedProcess[str], code: int = 1) -> str:
    text = done.stdout + done.stderr
    assert done.returncode == code, text
    assert "Traceback" not in text
    assert "✗" in text
    return text


def truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "truncated": truncated,
    "emptied": lambda _: b"\x00" * 4096,
    "not JSON, no database": lambda _: b"state: {here: there}\n" * 40,
    "damaged in the middle": lambda content: content[:200] + b"\xaa" * (len(content) - 200),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_state_is_named_and_left_alone(world: Lab, damage: str) -> None:
    path = file_of(world)
    content = DAMAGE[damage](path.read_bytes())
    path.write_bytes(content)
    for command in COMMANDS:
        text = said(run_cli(*command, cwd=world.root, code=None))
        assert f"{path} is damaged" in text
        assert "restore it from a backup, or move it away" in text
    assert path.read_bytes() == content


def test_after_moving_the_damaged_state_away_the_next_look_starts_anew(world: Lab) -> None:
    path = file_of(world)
    path.write_bytes(truncated(path.read_bytes()))
    path.rename(path.with_suffix(".damaged"))
    assert "never ran" in run_cli("status", cwd=world.root).stdout


def test_a_state_of_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "project", "sqlite", state="file:kept/state.json")
    lab.write()
    form = {"format": FORMAT + 1, "pipelines": {}, "leases": {}, "runs": {}, "novelty": True}
    file_of(lab).parent.mkdir()
    file_of(lab).write_text(json.dumps(form))
    for command in COMMANDS:
        text = said(run_cli(*command, cwd=lab.root, code=None))
        assert f"written by a newer Floodmark (format {FORMAT + 1}" in text
        assert "upgrade Floodmark" in text
    assert json.loads(file_of(lab).read_text()) == form


def test_a_write_protected_state_can_be_looked_at_and_is_not_changed(world: Lab) -> None:
    before = stored(world)
    path = file_of(world)
    for part in path.parent.iterdir():
        part.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        for command in (["run", "orders"], ["state", "delete", "orders"]):
            text = said(run_without_rights(*command, cwd=world.root))
            assert str(path) in text
            assert "rights" in text
        assert stored(world) == before
    finally:
        path.parent.chmod(0o755)
        for part in path.parent.iterdir():
            part.chmod(0o644)


def test_a_full_disk_leaves_the_old_state(world: Lab) -> None:
    before = stored(world)
    done = run_on_a_full_disk("run", "orders", cwd=world.root)
    text = said(done)
    assert str(file_of(world)) in text
    assert "space" in text or "full" in text or "too large" in text
    assert stored(world) == before
    # With room again it goes on as if nothing had been: what it says now is about the target, not about the state.
    again = run_cli("state", "set", "orders", "--mark", "2026-01-01", cwd=world.root, code=None)
    assert "the target table orders is gone" in said(again)


def test_a_limit_on_the_size_of_files_leaves_the_old_state(world: Lab) -> None:
    before = stored(world)
    # Smaller than the state is: whatever writes it fails half way.
    done = run_through(["prlimit", "--fsize=2000"], "run", "orders", cwd=world.root)
    text = said(done)
    assert str(file_of(world)) in text
    assert stored(world) == before


def run_through(prefix: list[str], *command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).with_name("floodmark"))
    env = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(
        [*prefix, program, *command], cwd=cwd, env=env, capture_output=True, text=True, timeout=120, check=False
    )


def run_without_rights(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Root may write anywhere, unless it gives that right up first."""
    give_up = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]
    return run_through(give_up if os.geteuid() == 0 else [], *command, cwd=cwd)


def run_on_a_full_disk(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """On a small disk in memory, mounted for this one process and filled to the last byte. Where no process may mount
    anything, a limit on the size of files comes nearest."""
    enter = next((how for how in (["unshare", "-rm"], ["unshare", "-m"]) if _can_mount(how)), None)
    if enter is None:
        return run_through(["prlimit", "--fsize=2000"], *command, cwd=cwd)
    kept, aside = cwd / "kept", cwd / "aside"
    shutil.copytree(kept, aside)
    program = shlex.join([str(Path(sys.executable).with_name("floodmark")), *command])
    script = (
        f"mount -t tmpfs -o size={ROOM} tmpfs {shlex.quote(str(kept))} && cp {aside}/* {kept}/ && "
        f"(cat /dev/zero > {kept}/filler 2>/dev/null; {program}; code=$?; "
        f"rm {kept}/filler; rm -r {aside}/*; cp {kept}/* {aside}/; exit $code)"
    )
    done = run_script([*enter, "sh", "-c", script], cwd)
    # What the disk held when it was unmounted is what the next command finds.
    shutil.rmtree(kept)
    aside.rename(kept)
    return done


def run_script(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=120, check=False)


def _can_mount(enter: list[str]) -> bool:
    tried = subprocess.run([*enter, "sh", "-c", "mount -t tmpfs tmpfs /mnt"], capture_output=True, check=False)
    return tried.returncode == 0
