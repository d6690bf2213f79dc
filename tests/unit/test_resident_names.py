"""Which runs may share a warm Spark, and who can reach it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from floodmark.spark import rendezvous, resident
from floodmark.spark.launch import Command
from floodmark.spark.place import is_thrown_away, wanted
from floodmark.spark.resident import name_of


@pytest.fixture
def command(tmp_path: Path) -> Command:
    jar = tmp_path / "a.jar"
    jar.write_text("classes")
    return Command("java", ("-Xmx1g",), (str(jar),))


def test_one_for_each_project_and_configuration(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"spark.master": "local[*]"}
    usual = name_of(tmp_path, command, settings)
    assert name_of(tmp_path, command, dict(settings)) == usual
    names = {
        usual,
        name_of(tmp_path / "other", command, settings),
        name_of(tmp_path, command, settings | {"spark.sql.shuffle.partitions": "3"}),
        name_of(tmp_path, replace(command, options=("-Xmx2g",)), settings),
    }
    os.utime(command.class_path[0], (1, 1))
    names.add(name_of(tmp_path, command, settings))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    names.add(name_of(tmp_path, command, settings))
    monkeypatch.setattr(resident, "VERSION", "99")
    names.add(name_of(tmp_path, command, settings))
    assert len(names) == 7
    assert "another" not in str(names)


def test_another_window_of_the_same_person_is_no_other_configuration(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = name_of(tmp_path, command, {})
    for name in ("TERM", "SHLVL", "SSH_TTY", "COLUMNS", "NO_COLOR"):
        monkeypatch.setenv(name, "another")
    assert name_of(tmp_path, command, {}) == usual


def test_the_meeting_place_is_this_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendezvous, "LONGEST", 500)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    place = rendezvous.folder()
    assert place.stat().st_mode & 0o777 == 0o700
    place.chmod(0o750)
    with pytest.raises(rendezvous.Unsafe):
        rendezvous.folder()
    place.rmdir()
    place.symlink_to(tmp_path)
    with pytest.raises(rendezvous.Unsafe):
        rendezvous.folder()


def test_without_a_place_of_the_system_it_lies_among_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert rendezvous.folder() == tmp_path / f"floodmark-{os.getuid()}"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/a/path/that/is/too/long" * 10)
    assert rendezvous.folder() == tmp_path / f"floodmark-{os.getuid()}"


@pytest.mark.parametrize("mark", ["CI", "KUBERNETES_SERVICE_HOST", "container"])
def test_auto_means_off_where_nobody_comes_back_to(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floodmark.spark.place.FILES", ())
    for name in ("CI", "KUBERNETES_SERVICE_HOST", "container", "AWS_LAMBDA_FUNCTION_NAME"):
        monkeypatch.delenv(name, raising=False)
    assert not is_thrown_away()
    assert wanted("auto")
    monkeypatch.setenv(mark, "1")
    assert [wanted(choice) for choice in ("auto", "on", "off")] == [False, True, False]
