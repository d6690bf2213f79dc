"""The commands as a person types them, on real files, with no JVM where none is needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.lab import Lab, ok
from tests.services import NO_JAVA, run_cli


@pytest.fixture
def world(sqlite_lab: Lab) -> Lab:
    """Loaded once, through Python; the commands then run in processes of their own."""
    sqlite_lab.fill(20)
    project = sqlite_lab.project(mode="append", batch_rows=7)
    ok(project.run("orders"))
    project.close()
    return sqlite_lab


def test_plan_status_history_state_and_a_quiet_run_start_no_jvm(world: Lab) -> None:
    said = {
        words: run_cli(*words.split(), cwd=world.root, env=NO_JAVA).stdout
        for words in ("validate", "plan", "status", "history orders", "state list", "state get orders", "run orders")
    }
    assert "nothing new" in said["run orders"]
    assert "fenced" in said["plan"]
    assert "21" in said["status"]
    assert "20" in said["history orders"]
    assert "orders" in said["state list"]


def test_json_is_one_document(world: Lab) -> None:
    world.fill(3, start=21)
    planned = json.loads(run_cli("plan", "--json", cwd=world.root).stdout)
    assert planned
    result = json.loads(run_cli("run", "orders", "--json", cwd=world.root).stdout)
    first = result[0] if isinstance(result, list) else result
    assert first["success"] is True
    assert first["rows_loaded"] == 3
    status = json.loads(run_cli("status", "--json", cwd=world.root).stdout)
    assert json.dumps(status).count('"integer": 24')


def test_state_reset_and_set_then_run_do_what_they_say(world: Lab) -> None:
    run_cli("state", "reset", "orders", "--to", "11", cwd=world.root)
    assert '"integer": 11' in json.dumps(json.loads(run_cli("state", "get", "orders", "--json", cwd=world.root).stdout))
    again = json.loads(run_cli("run", "orders", "--json", cwd=world.root).stdout)
    assert (again[0] if isinstance(again, list) else again)["rows_loaded"] == 10
    world.assert_equal()
    world.fill(20, start=21)
    run_cli("state", "set", "orders", "--mark", "31", cwd=world.root)
    run_cli("run", "orders", cwd=world.root)
    assert {row[0] for row in world.target_rows()} == {*range(1, 21), *range(31, 41)}


def test_state_export_and_import_move_the_state(world: Lab, tmp_path: Path) -> None:
    exported = tmp_path / "exported.json"
    run_cli("state", "export", "-o", str(exported), cwd=world.root)
    for part in world.root.glob("state.db*"):
        part.unlink()
    run_cli("state", "import", str(exported), cwd=world.root)
    assert "nothing new" in run_cli("run", "orders", cwd=world.root, env=NO_JAVA).stdout


def test_the_schema_accepts_the_file(world: Lab) -> None:
    import jsonschema
    from ruamel.yaml import YAML

    schema = json.loads(run_cli("schema", cwd=world.root).stdout)
    jsonschema.validate(YAML(typ="safe").load((world.root / "floodmark.yml").read_text()), schema)
