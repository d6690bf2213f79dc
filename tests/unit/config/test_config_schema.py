from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from floodmark.config import json_schema
from floodmark.model.spec import PipelineSpec

if TYPE_CHECKING:
    from tests.unit.config.conftest import Desk


@pytest.fixture
def schema(desk: Desk) -> dict[str, Any]:
    return json_schema(desk.classes)


def accepts(schema: dict[str, Any], text: str) -> bool:
    validator = jsonschema.Draft202012Validator(schema)
    return bool(validator.is_valid(YAML(typ="safe", pure=True).load(text)))


def test_it_is_a_schema(schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == schema


def test_what_the_loader_takes_the_schema_takes(schema: dict[str, Any], desk: Desk, good: str) -> None:
    files = [
        good,
        good
        + "state: {type: x}\nspark: {master: x, config: {a: 1, b: x, c: true}}\nvariables: {A: 1, B: x, C: true}\n",
        good + "defaults:\n  target: {mode: upsert}\n  batch_rows: 5\n",
        good.replace("connection: lake, table: orders, mode: upsert, ", "table: orders, ")
        + "defaults: {target: {connection: lake, mode: upsert}}\n",
        good.replace("{by: timestamp, column: updated_at}", "{column: updated_at}")
        + "defaults: {change: {by: timestamp}}",
        good.replace("500", "${N}").replace("keys:", 'deletion_vectors: "${B}", keys:'),
        good.replace("upsert", '"${MODE}"').replace("timestamp", '"${BY}"'),
        good.replace("column: updated_at", "columns: [a, b], delay: 5m, start: 7, nulls: skip, timezone: UTC"),
        good.replace("column: updated_at", 'column: a, delay: "${D}", start: "${S}", nulls: "${X}"'),
        good.replace("url:", 'port: "${N}", ratio: "${R:-0.5}", ssl: "${B}", pool: {size: 3}, url:'),
        good.replace("batch_rows: 500", "transform: {sql: select 1}"),
        good.replace("batch_rows: 500", "transform: null"),
        good + "defaults:\nspark:\nvariables:\nstate:\n",
    ]
    environ = {"N": "5", "B": "true", "MODE": "upsert", "BY": "timestamp", "D": "1s", "S": "7", "X": "skip", "R": "1"}
    for text in files:
        desk.load(text, environ=environ)
        assert accepts(schema, text), text
    desk.write("more.yml", "variables: {}\n")
    for include in ("more.yml", "[more.yml]", "'m*.yml'"):
        desk.load(good + f"include: {include}\n")
        assert accepts(schema, good + f"include: {include}\n")


def test_what_the_schema_refuses_the_loader_refuses(schema: dict[str, Any], desk: Desk, good: str) -> None:
    mistakes = [
        ("tabel", good.replace("table: public", "tabel: public")),
        ("batch_row", good.replace("batch_rows", "batch_row")),
        ("name", good.replace("batch_rows: 500", "name: x")),
        ("places", good.replace("batch_rows: 500", "places: {}")),
        ("text for a number", good.replace("500", "abc")),
        ("too small", good.replace("500", "0")),
        ("mode", good.replace("upsert", "upsrt")),
        ("by", good.replace("timestamp", "timestmp")),
        ("an option of another kind", good.replace("by: timestamp", "by: sequence, timezone: UTC")),
        ("a list", good.replace("[order_id]", "order_id")),
        ("a boolean", good.replace("keys:", "deletion_vectors: maybe, keys:")),
        ("top level", good.replace("connections:", "conections:")),
        ("type", good.replace("type: shop", "type: shoop")),
        ("no type", good.replace("type: shop, ", "")),
        ("missing url", good.replace('url: "db://host/shop"', "port: 5")),
        ("another type's option", good.replace("path:", "url: x, path:")),
        ("port", good.replace("url:", "port: abc, url:")),
        ("nested", good.replace("url:", "pool: {siez: 5}, url:")),
        ("defaults", good + "defaults: {name: x}\n"),
        ("defaults deep", good + "defaults: {source: {tabel: x}}\n"),
        ("spark", good + "spark: {mastr: x}\n"),
        ("variables", good + "variables: {A: [1]}\n"),
        ("state", good + "state: [1]\n"),
        ("include", good + "include: 5\n"),
    ]
    for what, text in mistakes:
        assert text != good, what
        desk.fails(text)
        assert not accepts(schema, text), what


def test_descriptions_and_defaults_are_kept(schema: dict[str, Any]) -> None:
    pipeline = schema["$defs"]["Pipeline"]
    assert pipeline["properties"].keys() == PipelineSpec.model_fields.keys() - {"name", "places"}
    assert "required" not in pipeline
    assert pipeline["properties"]["batch_rows"]["default"] == 500_000
    assert "ties are never cut apart" in pipeline["properties"]["batch_rows"]["description"]
    assert schema["$defs"]["TimestampSpec"]["properties"]["delay"]["default"] == "5m"
    assert schema["properties"]["state"]["default"] == "sqlite:///.floodmark/state.db"


def test_every_definition_is_used_and_every_reference_resolves(schema: dict[str, Any]) -> None:
    text = json.dumps(schema)
    assert "Place" not in schema["$defs"]
    for name in schema["$defs"]:
        assert f'"#/$defs/{name}"' in text, name
    assert text.count('"$ref"') == sum(text.count(f'"#/$defs/{name}"') for name in schema["$defs"])


def test_no_connections_known() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema({}))
