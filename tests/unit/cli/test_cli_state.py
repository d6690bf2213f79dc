from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Fakes


def test_list_shows_the_declared_and_the_stored(fakes: Fakes) -> None:
    fakes.project.store.states = {"orders": fakes.state(), "old": fakes.state("old")}
    lines = fakes.call("state", "list").out.splitlines()
    assert [line.split()[0] for line in lines] == ["pipeline", "orders", "events", "old"]
    forms = json.loads(fakes.call("state", "list", "--json").out)
    assert (forms["events"], forms["orders"]["revision"]) == (None, 3)


def test_get(fakes: Fakes) -> None:
    assert fakes.call("state", "get", "orders").out == "orders has no state: it never ran\n"
    fakes.project.store.states["orders"] = fakes.state()
    assert "  mark         2026-11-15 10:00:41" in fakes.call("state", "get", "orders").out
    assert json.loads(fakes.call("state", "get", "orders", "--json").out) == fakes.state().to_dict()
    said = fakes.call("state", "get", "ordrs")
    assert (said.code, "did you mean" in said.err) == (2, True)


def test_set_and_reset_tell_where_the_next_run_reads(fakes: Fakes) -> None:
    fakes.project.store.states["orders"] = fakes.state()
    assert fakes.call("state", "set", "orders", "--mark", "2026-11-01").out == (
        "✓ orders  the next run reads from 2026-11-01 00:00:00   (the mark was 2026-11-15 10:00:41)\n"
    )
    assert "reads from the beginning" in fakes.call("state", "reset", "orders").out
    assert "reads from 2026-11-01" in fakes.call("state", "reset", "orders", "--to", "2026-11-01").out
    assert fakes.project.calls == [
        ("set", "orders", "2026-11-01"),
        ("reset", "orders", None),
        ("reset", "orders", "2026-11-01"),
    ]
    assert fakes.call("state", "set", "orders").code == 2


def test_delete_also_what_the_file_no_longer_names(fakes: Fakes) -> None:
    fakes.project.store.states["old"] = fakes.state("old")
    assert fakes.call("state", "delete", "old").out == "✓ old  state deleted\n"
    assert "nothing to delete" in fakes.call("state", "delete", "orders").out
    assert fakes.call("state", "delete", "old").code == 2


def test_export_and_import(fakes: Fakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.project.store.states["orders"] = fakes.state()
    printed = json.loads(fakes.call("state", "export").out)
    file = tmp_path / "state.json"
    assert fakes.call("state", "export", "-o", str(file)).code == 0
    assert json.loads(file.read_text()) == printed
    assert list(tmp_path.iterdir()) == [file]

    assert fakes.call("state", "import", str(file), "--overwrite").code == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(file.read_text()))
    assert fakes.call("state", "import", "-").code == 0
    assert fakes.imported == [(printed, True), (printed, False)]


def test_import_of_something_else(fakes: Fakes, tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    assert fakes.call("state", "import", str(file)).code == 2
    file.write_text("[1]")
    assert fakes.call("state", "import", str(file)).code == 2
    file.write_text("{")
    assert "can't be read as an export" in fakes.call("state", "import", str(file)).err


def test_export_to_nowhere_is_told(fakes: Fakes, tmp_path: Path) -> None:
    said = fakes.call("state", "export", "-o", str(tmp_path / "no" / "state.json"))
    assert (said.code, "can't be written" in said.err) == (2, True)
