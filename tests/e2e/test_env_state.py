"""State in a variable, as a script uses it: what one command prints, the next is given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.lab import Lab, ok
from tests.services import run_cli

NO_JAVA = {"JAVA_HOME": "/nonexistent", "PATH": "/usr/bin"}
NAME = "FLOODMARK_STATE"


@pytest.fixture
def world(sqlite_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Loaded once; the variable holds what that run handed back."""
    sqlite_lab.state = f"env:{NAME}"
    sqlite_lab.fill(20)
    project = sqlite_lab.project(mode="append")
    ok(project.run("orders"))
    kept = project.to_keep()
    project.close()
    monkeypatch.setenv(NAME, kept[NAME])
    return sqlite_lab


def test_each_command_hands_the_state_to_the_next(world: Lab) -> None:
    """Through a shell, as the docs show it."""
    floodmark = Path(sys.executable).with_name("floodmark")
    script = f"for i in 1 2; do export {NAME}=$({floodmark} run | sed -n 's/^{NAME}=//p'); done; echo \"${NAME}\""
    done = subprocess.run(
        ["sh", "-c", script], cwd=world.root, env=os.environ | NO_JAVA, capture_output=True, text=True, check=True
    )
    state = json.loads(done.stdout)["pipelines"]["orders"]
    assert (state["run_count"], state["mark"]) == (3, {"integer": 21})
    as_json = json.loads(run_cli("run", "--json", cwd=world.root, env=NO_JAVA).stdout)
    assert as_json[-1]["nothing_new"] is True
    assert json.loads(as_json[-1]["keep"][NAME])["pipelines"]["orders"]["run_count"] == 2


def test_commands_that_only_look_hand_nothing_back(world: Lab) -> None:
    for command in ("status", "plan", "state list"):
        assert f"{NAME}=" not in run_cli(*command.split(), cwd=world.root, env=NO_JAVA).stdout
    assert "orders" in run_cli("status", cwd=world.root).stdout


def test_a_reset_is_handed_back_too(world: Lab) -> None:
    said = run_cli("state", "reset", "orders", "--to", "11", cwd=world.root, env=NO_JAVA).stdout
    line = said.splitlines()[-1]
    assert json.loads(line.removeprefix(f"{NAME}="))["pipelines"]["orders"]["mark"] == {"integer": 11}


def test_plan_says_what_it_can_not_do(world: Lab) -> None:
    said = run_cli("plan", cwd=world.root, env=NO_JAVA).stdout
    for words in ("no lease", "no history", "keeps nothing itself"):
        assert f"! state store: {words}" in said


def test_a_value_that_was_lost_is_found_again_in_the_target(world: Lab) -> None:
    said = run_cli("run", "orders", cwd=world.root, env={**NO_JAVA, NAME: None}).stdout
    assert "the state was rebuilt from the target" in said
    assert "nothing new" in said


def test_a_bad_value_is_a_clear_error(world: Lab) -> None:
    done = run_cli("run", "orders", cwd=world.root, env={**NO_JAVA, NAME: '{"format": 1, "pipe'}, code=1)
    assert f"the variable {NAME} is damaged: it is not JSON" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
