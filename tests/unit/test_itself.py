"""A pipeline whose target is its own source."""

from __future__ import annotations

from pathlib import Path

import pytest

import floodmark
from floodmark.errors import ConfigError
from floodmark.opening import validate

PROJECT = """\
connections:
  shop: {{type: sqlite, path: shop.db}}
  again: {{type: sqlite, path: shop.db}}
  other: {{type: sqlite, path: other.db}}
  files: {{type: parquet, path: files}}
pipelines:
  orders:
    source: {{connection: shop, table: {source}}}
    change: {{by: timestamp, column: updated_at}}
    target: {{connection: {to}, table: {target}, mode: {mode}, keys: [id]}}
"""


def declared(folder: Path, source: str, to: str, target: str, mode: str = "upsert") -> Path:
    file = folder / "floodmark.yml"
    file.write_text(PROJECT.format(source=source, to=to, target=target, mode=mode))
    return file


@pytest.mark.parametrize(
    ("source", "to", "target"),
    [("orders", "shop", "orders"), ("orders", "again", "orders"), ("main.orders", "shop", "orders")],
)
def test_a_table_is_not_loaded_into_itself(tmp_path: Path, source: str, to: str, target: str) -> None:
    file = declared(tmp_path, source, to, target)
    with pytest.raises(ConfigError, match="would be loaded into itself") as refused:
        validate(file)
    assert refused.value.declared_at is not None
    assert refused.value.declared_at.line == 10
    with pytest.raises(ConfigError, match="would be loaded into itself"):
        floodmark.load(file).run("orders", full_refresh=True)


@pytest.mark.parametrize(("to", "target"), [("shop", "copies"), ("other", "orders")])
def test_a_copy_beside_it_or_elsewhere_is_one(tmp_path: Path, to: str, target: str) -> None:
    validate(declared(tmp_path, "orders", to, target))


def test_what_a_target_lacks_is_known_offline(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a folder of Parquet files has no mode history"):
        validate(declared(tmp_path, "orders", "files", "orders", "history"))
    with pytest.raises(ConfigError, match="a database has no `partition_by`"):
        validate(declared(tmp_path, "orders", "other", "orders", "upsert, partition_by: [day]"))
