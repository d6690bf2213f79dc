"""A source whose driver was not installed says what to install, whatever is asked of it first."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from floodmark.errors import MissingExtra
from floodmark.opening import declare


@pytest.mark.parametrize(
    ("kind", "driver", "extra"), [("postgres", "psycopg", "postgres"), ("mysql", "pymysql", "mysql")]
)
@pytest.mark.parametrize("source", [{"table": "orders"}, {"query": "select 1 AS id"}, {"tables": "public.*"}])
def test_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, driver: str, extra: str, source: dict[str, str]
) -> None:
    monkeypatch.setitem(sys.modules, driver, None)  # as if it were not there
    scheme = "postgresql" if kind == "postgres" else kind
    table = "{table}" if "tables" in source else "orders"
    pipeline = {
        "source": {"connection": "shop", **source},
        "change": {"by": "sequence", "column": "id"},
        "target": {"connection": "lake", "table": table, "mode": "append"},
    }
    connections = {"shop": {"type": kind, "url": f"{scheme}://me@host/shop"}, "lake": {"type": "delta", "path": "lake"}}
    project = declare({"connections": connections, "pipelines": {"p": pipeline}}, root=tmp_path)
    with pytest.raises(MissingExtra) as caught:
        project.plan(project.names([])[0])
    assert caught.value.hint == f"pip install 'floodmark[{extra}]'"
