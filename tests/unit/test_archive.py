"""Loaded classes in the cache: made once, tried, used, made anew when anything changes. On a small class path."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from floodmark.spark.archive import UNUSED, Archive
from floodmark.spark.jars import jars_for
from floodmark.spark.java import find_java
from floodmark.spark.launch import Command


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    jar = tmp_path / "driver.jar"
    jar.write_bytes(jars_for(["postgres"])[0].read_bytes())
    return Archive(str(tmp_path / "archives"), Command(str(find_java().path), ("-XX:+UseSerialGC",), (str(jar),)))


def java(archive: Archive, *options: str) -> subprocess.CompletedProcess[str]:
    """A JVM on the archive's class path that loads some classes and ends."""
    command = archive.command
    words = [command.java, *command.options, *options, "-cp", command.class_path[0], "org.postgresql.util.PGJDBCMain"]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def recorded(archive: Archive) -> Path:
    (option, *quiet) = archive.options()
    assert option.startswith("-XX:DumpLoadedClassList=")
    done = java(archive, option, *quiet)
    path = Path(option.partition("=")[2])
    assert "org/postgresql/util/PGJDBCMain" in path.read_text(), done.stderr
    return path


def test_a_first_jvm_writes_its_classes_down_and_the_next_one_finds_them(archive: Archive) -> None:
    assert archive.make(recorded(archive))
    option, mode, *quiet = archive.options()
    assert (option, mode) == (f"-XX:SharedArchiveFile={archive.path('jsa')}", "-Xshare:auto")
    silent = java(archive, option, mode, *quiet)
    plain = java(archive)
    assert (silent.stdout, silent.stderr) == (plain.stdout, plain.stderr)
    told = java(archive, option, "-Xshare:on", "-Xlog:class+load")
    assert "org.postgresql.util.PGJDBCMain source: shared objects file" in told.stdout


def test_it_serves_whatever_drivers_stand_behind_its_class_path(archive: Archive) -> None:
    archive.make(recorded(archive))
    option, *_ = archive.options()
    command = replace(archive.command, drivers=tuple(map(str, jars_for(["sqlite"]))))
    assert Archive(archive.folder, command).options()[0] == option
    path = command.words()[command.words().index("-cp") + 1]
    words = [command.java, *command.options, option, "-Xshare:on", "-Xlog:class+load", "-cp", path]
    told = subprocess.run([*words, "org.postgresql.util.PGJDBCMain"], capture_output=True, text=True, check=False)
    assert "org.postgresql.util.PGJDBCMain source: shared objects file" in told.stdout, told.stderr


def test_what_changes_the_classes_makes_the_archive_another_one(archive: Archive) -> None:
    archive.make(recorded(archive))
    jar = Path(archive.command.class_path[0])
    os.utime(jar, (1, 1))
    assert archive.options()[0].startswith("-XX:DumpLoadedClassList=")
    more = Command(archive.command.java, ("-XX:+UseG1GC",), archive.command.class_path)
    assert Archive(archive.folder, more).key != archive.key


def test_one_that_was_cut_short_is_made_anew(archive: Archive) -> None:
    """It would end the JVM."""
    archive.make(recorded(archive))
    whole = archive.path("jsa").read_bytes()
    archive.path("jsa").chmod(0o644)
    archive.path("jsa").write_bytes(whole[: len(whole) // 2])
    assert archive.make(recorded(archive))
    assert java(archive, *archive.options()).returncode == java(archive).returncode


def test_one_that_can_not_be_made_is_not_tried_after_each_run(archive: Archive, tmp_path: Path) -> None:
    Path(archive.folder).mkdir()
    assert not archive.make(tmp_path / "no list at all")
    assert archive.path("failed").exists()
    assert archive.options() == ()
    os.utime(archive.path("failed"), (1, 1))
    assert archive.options() != ()
    left = {path.suffix for path in Path(archive.folder).iterdir()}
    assert left == {".failed", ".lock"}


def test_only_one_makes_it_and_old_ones_go(archive: Archive) -> None:
    classes = recorded(archive)
    old = Path(archive.folder) / "old.jsa"
    old.write_text("of a Java that is gone")
    os.utime(old, (time.time() - UNUSED - 1,) * 2)
    assert archive.make(classes)
    assert not archive.make(classes), "it is there already"
    assert not old.exists()


def test_it_is_made_in_the_background(archive: Archive) -> None:
    from tests.services import wait_for

    classes = recorded(archive)
    archive.make_in_background()
    wait_for(archive._is_whole, "the archive")
    wait_for(lambda: not classes.exists(), "its list to be cleared away")


def test_a_cache_that_can_not_be_written_is_none(archive: Archive) -> None:
    Path(archive.folder).write_text("a file, where a folder should be")
    assert archive.options() == ()
