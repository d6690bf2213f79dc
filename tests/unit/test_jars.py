from __future__ import annotations

import hashlib
import urllib.error
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from floodmark.errors import ConfigError
from floodmark.spark.jars import JARS, Jar, cache_folder, jars_for

CONTENT = b"not really a jar"


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> Jar:
    jar = Jar("org.acme", "acme-jdbc", "1.2", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setitem(JARS, "acme", (jar,))
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.delenv("FLOODMARK_MAVEN_URL", raising=False)
    return jar


class Repository:
    """Serves one content for every URL, and remembers what was asked."""

    def __init__(self, content: bytes = CONTENT) -> None:
        self.content = content
        self.asked: list[str] = []

    def __call__(self, url: str, into: Path) -> None:
        self.asked.append(url)
        into.write_bytes(self.content)


def offline(url: str, into: Path) -> None:
    into.write_bytes(CONTENT[:4])
    raise OSError("network is unreachable")


def test_is_downloaded_once_and_then_used_offline(acme: Jar, tmp_path: Path) -> None:
    repository, told = Repository(), list[str]()
    first = jars_for(["acme"], cache=tmp_path, fetch=repository, tell=told.append)
    second = jars_for(["acme"], cache=tmp_path, fetch=offline, tell=told.append)
    assert first == second == [tmp_path / "acme-jdbc-1.2.jar"]
    assert first[0].read_bytes() == CONTENT
    assert repository.asked == ["https://repo1.maven.org/maven2/org/acme/acme-jdbc/1.2/acme-jdbc-1.2.jar"]
    assert told == ["Downloading acme-jdbc-1.2.jar"]
    assert list(tmp_path.iterdir()) == first


def test_a_wrong_checksum_is_refused(acme: Jar, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"checksum .* expected {acme.sha256}"):
        jars_for(["acme"], cache=tmp_path, fetch=Repository(b"something else"))
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_jar_in_the_cache_is_replaced(acme: Jar, tmp_path: Path) -> None:
    (tmp_path / acme.filename).write_bytes(CONTENT[:-1])
    (path,) = jars_for(["acme"], cache=tmp_path, fetch=Repository())
    assert path.read_bytes() == CONTENT


def test_without_network_the_error_names_the_jar_and_where_to_place_it(acme: Jar, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        jars_for(["acme"], cache=tmp_path, fetch=offline)
    assert "org.acme:acme-jdbc:1.2" in str(caught.value)
    assert "https://repo1.maven.org/maven2/org/acme" in str(caught.value)
    assert "network is unreachable" in str(caught.value)
    assert str(tmp_path / "acme-jdbc-1.2.jar") in (caught.value.hint or "")
    assert list(tmp_path.iterdir()) == []


def test_a_passing_fault_is_tried_again_and_an_answer_is_not(acme: Jar, tmp_path: Path) -> None:
    calls: list[str] = []

    def shaky(url: str, into: Path) -> None:
        calls.append(url)
        if len(calls) < 3:
            raise ConnectionResetError("reset by peer")
        into.write_bytes(CONTENT)

    def absent(url: str, into: Path) -> None:
        calls.append(url)
        raise urllib.error.HTTPError(url, 404, "Not Found", Message(), None)

    assert jars_for(["acme"], cache=tmp_path / "a", fetch=shaky)
    assert len(calls) == 3
    with pytest.raises(ConfigError, match="404"):
        jars_for(["acme"], cache=tmp_path / "b", fetch=absent)
    assert len(calls) == 4


def test_a_mirror_is_used_and_its_password_never_shown(
    acme: Jar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOODMARK_MAVEN_URL", "https://me:hush@mirror.example/maven/")
    repository = Repository(b"other")
    with pytest.raises(ConfigError) as caught:
        jars_for(["acme"], cache=tmp_path, fetch=repository)
    assert repository.asked == ["https://me:hush@mirror.example/maven/org/acme/acme-jdbc/1.2/acme-jdbc-1.2.jar"]
    assert "https://mirror.example/maven/org" in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_mirror_may_be_a_folder(acme: Jar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "mirror/org/acme/acme-jdbc/1.2"
    folder.mkdir(parents=True)
    (folder / acme.filename).write_bytes(CONTENT)
    monkeypatch.setenv("FLOODMARK_MAVEN_URL", (tmp_path / "mirror").as_uri())
    (path,) = jars_for(["acme"], cache=tmp_path / "cache")
    assert path.read_bytes() == CONTENT


def test_needs_are_merged_and_an_unknown_one_is_named(acme: Jar, tmp_path: Path) -> None:
    assert len(jars_for(["acme", "acme"], cache=tmp_path, fetch=Repository())) == 1
    assert jars_for([], cache=tmp_path, fetch=offline) == []
    with pytest.raises(ConfigError, match="'oracle'") as caught:
        jars_for(["oracle"], cache=tmp_path)
    assert "delta, iceberg, mariadb, mysql, postgres, sqlite" in (caught.value.hint or "")


def test_a_jar_of_the_users_own_is_a_path_or_a_coordinate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLOODMARK_MAVEN_URL", raising=False)
    own = tmp_path / "driver.jar"
    with zipfile.ZipFile(own, "w") as jar:
        jar.writestr("Driver.class", "x")
    repository = Repository(own.read_bytes())
    cache = tmp_path / "cache"
    found = jars_for([str(own), "org.acme:driver:2.0"], cache=cache, fetch=repository)
    assert found == [own, cache / "driver-2.0.jar"]
    assert repository.asked == ["https://repo1.maven.org/maven2/org/acme/driver/2.0/driver-2.0.jar"]
    assert jars_for(["org.acme:driver:2.0"], cache=cache, fetch=offline) == [cache / "driver-2.0.jar"]
    with pytest.raises(ConfigError, match="no jar's content"):
        jars_for(["org.acme:cut:1"], cache=cache, fetch=Repository(own.read_bytes()[:-30]))
    with pytest.raises(ConfigError, match=r"there is no jar .*missing\.jar"):
        jars_for([str(tmp_path / "missing.jar")], cache=cache, fetch=offline)


def test_a_cache_that_cannot_be_written_is_named(acme: Jar, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="can't be written"):
        jars_for(["acme"], cache=tmp_path / "file" / "jars", fetch=Repository())


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOODMARK_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "own/jars"
    monkeypatch.delenv("FLOODMARK_CACHE")
    assert cache_folder() == tmp_path / "xdg/floodmark/jars"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / "home/.cache/floodmark/jars"
