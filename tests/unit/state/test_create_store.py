"""From the `state:` setting to a store, and from store to store."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from floodmark.errors import ConfigError, MissingExtra, StateError
from floodmark.model.lease import Lease
from floodmark.model.ledger import PipelineState
from floodmark.model.outcome import TargetState
from floodmark.registry import Registry
from floodmark.state.env import EnvStore
from floodmark.state.file import FileStore
from floodmark.state.objects import ObjectStore
from floodmark.state.sql import SqlStore
from floodmark.state.target import TargetStore
from floodmark.stores import capabilities, create_state_store, export_state, import_state
from floodmark.testing.store_suite import a_state, export_state_of


def nothing_landed(_: str) -> TargetState:
    return TargetState(exists=False)


@pytest.mark.parametrize(
    ("config", "kind", "file"),
    [
        ("file:deep/state.json", FileStore, "root/deep/state.json"),
        ("file:./state.json", FileStore, "root/state.json"),
        ("file:{abs}/state.json", FileStore, "abs/state.json"),
        ("file://{abs}/state.json", FileStore, "abs/state.json"),
        ("sqlite:///.floodmark/state.db", SqlStore, "root/.floodmark/state.db"),
        ("sqlite:///{abs}/state.db", SqlStore, "abs/state.db"),
        ("SQLite:///state.db", SqlStore, "root/state.db"),
        ({"backend": "file", "path": "state.json"}, FileStore, "root/state.json"),
        ({"backend": "file", "path": Path("state.json")}, FileStore, "root/state.json"),
        ({"backend": "sqlite", "path": "what? 100%.db"}, SqlStore, "root/what? 100%.db"),
        ({"backend": "sqlite", "url": "sqlite:///state.db"}, SqlStore, "root/state.db"),
        ({"url": "file:state.json"}, FileStore, "root/state.json"),
    ],
)
def test_where_the_file_is(config: str | Mapping[str, Any], kind: type, file: str, tmp_path: Path) -> None:
    if isinstance(config, str):
        config = config.replace("{abs}", str(tmp_path / "abs"))
    store = create_state_store(config, root=tmp_path / "root")
    assert isinstance(store, kind)
    assert list(tmp_path.iterdir()) == []
    store.save(a_state())
    store.close()
    assert (tmp_path / file).is_file()


def test_a_relative_root_survives_a_change_of_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = create_state_store("file:state.json")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    store.save(a_state())
    assert (tmp_path / "state.json").is_file()


@pytest.mark.parametrize(
    "scheme", ["postgresql", "postgres", "postgresql+psycopg", "mysql", "mariadb", "mysql+pymysql"]
)
def test_a_bare_url_finds_its_driver_and_opens_nothing(scheme: str) -> None:
    store = create_state_store(f"{scheme}://etl:s3cret@127.0.0.1:1/state?connect_timeout=2")
    assert isinstance(store, SqlStore)
    with pytest.raises(StateError) as caught:
        store.get("orders")
    assert caught.value.transient
    shown = f"{caught.value.message} {caught.value.hint}"
    assert "etl:***@127.0.0.1:1/state" in shown
    assert "s3cret" not in shown


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [
        ("postgresql://h/d", "psycopg", "postgres"),
        ("mysql://h/d", "pymysql", "mysql"),
        ("s3://b/state.json", "obstore", "object-store"),
    ],
)
def test_a_missing_extra_names_its_pip_command(
    url: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "floodmark.state.objects", raising=False)
    with pytest.raises(MissingExtra) as caught:
        create_state_store(url).get("orders")
    assert caught.value.hint == f"pip install 'floodmark[{extra}]'"


def test_state_in_the_target() -> None:
    for config in ("target:", {"backend": "target"}):
        store = create_state_store(config, inspect=nothing_landed, pipelines=["orders"])
        assert isinstance(store, TargetStore)
    with pytest.raises(ConfigError, match="needs the targets"):
        create_state_store("target:")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("sqlit:///state.db", "unknown state backend 'sqlit' did you mean sqlite? Known: az, env, file"),
        (
            "redis://u:s3cret@h/0",
            "Known: az, env, file, gs, mariadb, mysql, postgres, postgresql, s3, sqlite, target",
        ),
        ({"backend": "fil", "path": "x"}, "unknown state backend 'fil' did you mean file?"),
        ("state.json", "no scheme"),
        ("", "no scheme"),
        ("file:", "needs the path of a file"),
        ("file://state.json", "names no host"),
        ("sqlite://", "three slashes"),
        ("sqlite:state.db", "three slashes"),
        ("sqlite:///", "needs the path of a file"),
        ("sqlite:///:memory:", "needs the path of a file"),
        ("sqlite:///state.db?mode=ro", "no settings after a ?"),
        ({"backend": "file"}, "either a path or a url"),
        ({"backend": "file", "path": "a", "url": "file:b"}, "either a path or a url"),
        ({"backend": "file", "pth": "a"}, "'file' has no setting 'pth' did you mean path?"),
        ({"backend": "file", "url": "sqlite:///state.db"}, "but the url is of 'sqlite'"),
        ({"backend": "target", "path": "x"}, "'target' has no setting 'path'"),
        ({"url": "file:x", "path": "y"}, "no setting 'path'"),
        ({"path": "x"}, "neither a backend nor a url"),
        ("file:s3://bucket/state.json", "state: s3://bucket/state.json"),
        ("s3://bucket", "names no object"),
        ("s3://bucket/", "names no object"),
        ({"backend": "s3", "url": "s3://b/state.json", "reggion": "x"}, "'reggion' is not valid"),
        ({"backend": "s3", "path": "state.json"}, "state 's3' needs a url"),
        ({"backend": "mysql", "url": "postgresql://u:s3cret@h/d"}, "the backend is 'mysql', but"),
        ({"backend": "postgresql", "url": "postgresql://h/d", "password": "s3cret"}, "has no setting 'password'"),
        ("postgresql://u:s3cret@h:port/d", "percent-encode the password"),
        ("env:", "is not the name of a variable"),
        ("env:MY-STATE", "is not the name of a variable"),
        ({"backend": "env"}, "either a variable or a url"),
        ({}, "neither a backend nor a url"),
        (5, "a URL or a map, not int"),
    ],
)
def test_mistakes_are_explained(config: Any, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        create_state_store(config, inspect=nothing_landed)
    shown = f"{caught.value.message} {caught.value.hint}"
    assert words in shown
    assert "s3cret" not in shown


def test_a_plug_in_gets_its_own_settings() -> None:
    seen: list[dict[str, Any]] = []

    def factory(**options: Any) -> TargetStore:
        seen.append(options)
        return TargetStore(nothing_landed)

    registry = Registry()
    registry.register("state", "consul", factory)
    create_state_store({"backend": "consul", "host": "h"}, registry=registry)
    create_state_store("consul+tls://h/key", registry=registry)
    assert seen == [{"host": "h"}, {"url": "consul+tls://h/key"}]
    with pytest.raises(ConfigError) as caught:
        create_state_store("file:x", registry=registry)
    assert caught.value.hint == "Known: consul"


def test_capabilities(tmp_path: Path) -> None:
    for able in (FileStore(tmp_path / "s.json"), SqlStore(tmp_path / "s.db"), ObjectStore("s3://b/s.json")):
        assert set(capabilities(able).values()) == {None}
    lacking = capabilities(TargetStore(nothing_landed))
    assert lacking["lease"] == "no lease: two runners are told apart only when they commit"
    assert str(lacking["history"]).startswith("no history:")
    assert lacking["memory"] is None
    assert all(capabilities(EnvStore("FLOODMARK_STATE", {})).values())


def test_state_moves_from_one_kind_of_store_to_another(tmp_path: Path) -> None:
    old, new = FileStore(tmp_path / "s.json"), SqlStore(tmp_path / "s.db")
    old.save(a_state("a"))
    old.save(a_state("b"))
    import_state(new, export_state(old))
    assert export_state(new) == export_state(old)
    new.close()


BAD = {
    "no map": [],
    "no pipelines": {"format": 1},
    "no format": {"pipelines": {}},
    "a bad state": {"format": 1, "pipelines": {"a": a_state("a").to_dict(), "b": {"format": 1}}},
    "another's name": {"format": 1, "pipelines": {"a": a_state("b").to_dict()}},
    "a newer state": {"format": 1, "pipelines": {"a": {**a_state("a").to_dict(), "format": 2}}},
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_bad_data_imports_nothing(data: Any, tmp_path: Path) -> None:
    store = FileStore(tmp_path / "s.json")
    with pytest.raises(StateError):
        import_state(store, data)
    assert store.list_pipelines() == []


class FailsAt(FileStore):
    """A store that breaks on one pipeline."""

    bad = ""

    def save(self, state: PipelineState, lease: Lease | None = None) -> PipelineState:
        if state.pipeline == self.bad:
            raise StateError("the disk is full")
        return super().save(state, lease)


def test_an_import_that_breaks_is_undone(tmp_path: Path) -> None:
    store = FailsAt(tmp_path / "s.json")
    store.save(a_state("b", run_count=50))
    store.bad = "c"
    with pytest.raises(StateError, match="the disk is full"):
        import_state(store, export_state_of(a_state("a"), a_state("b"), a_state("c")), overwrite=True)
    assert store.list_pipelines() == ["b"]
    kept = store.get("b")
    assert kept is not None
    assert kept.run_count == 50


def test_the_target_takes_no_import() -> None:
    with pytest.raises(StateError, match="can't be imported"):
        import_state(TargetStore(nothing_landed), export_state_of(a_state()))
