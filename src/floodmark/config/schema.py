"""The JSON Schema of a floodmark.yml, for editors, from the classes that check it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from floodmark.config.locate import NOT_WRITTEN
from floodmark.model.duration import show_duration
from floodmark.model.spec import ConnectionOptions, PipelineSpec, ProjectSpec, SparkSpec

_VARIABLE = {"type": "string", "pattern": r"\$\{"}
_ABOUT = ("title", "description", "default", "examples")


class _Generator(GenerateJsonSchema):
    def encode_default(self, dft: Any) -> Any:
        # pydantic would write PT5M, which the file does not accept.
        return show_duration(dft) if isinstance(dft, timedelta) else super().encode_default(dft)


def json_schema(connection_classes: Mapping[str, type[ConnectionOptions]]) -> dict[str, Any]:
    """`connection_classes` by the name that the user writes as `type:`."""
    classes: list[type[BaseModel]] = [PipelineSpec, SparkSpec, *dict.fromkeys(connection_classes.values())]
    refs, definitions = models_json_schema(
        [(cls, "validation") for cls in classes], schema_generator=_Generator, ref_template="#/$defs/{model}"
    )
    names = {cls: refs[cls, "validation"]["$ref"].rpartition("/")[2] for cls in classes}
    raw: dict[str, Any] = definitions["$defs"]
    pipeline = raw.pop(names[PipelineSpec])
    for option in NOT_WRITTEN:
        del pipeline["properties"][option]
    pipeline["title"] = "Pipeline"
    connections = [
        _connection(_loose(raw[names[cls]], False), kind) for kind, cls in sorted(connection_classes.items())
    ]
    below_pipeline = _reachable(pipeline, raw)
    for cls in connection_classes.values():
        raw.pop(names[cls], None)
    defs = {name: _loose(schema, name in below_pipeline) for name, schema in raw.items()}
    spark = {"$ref": f"#/$defs/{names[SparkSpec]}"}
    whole = _whole(_loose(pipeline, True), connections, spark)
    used = _reachable(whole, defs)
    return {**whole, "$defs": {**whole["$defs"], **{name: defs[name] for name in sorted(used & defs.keys())}}}


def _whole(pipeline: dict[str, Any], connections: list[dict[str, Any]], spark: dict[str, Any]) -> dict[str, Any]:
    text_or_list = [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
    state = ProjectSpec.model_fields["state"].default
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "floodmark.yml",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "connections": {
                "description": "Databases and lakes, by name.",
                "type": ["object", "null"],
                "additionalProperties": {"oneOf": connections} if connections else False,
            },
            "state": {
                "description": "Where the ledger is kept.",
                "anyOf": [{"type": "string"}, {"type": "object"}, {"type": "null"}],
                "default": state,
            },
            "defaults": {"description": "What every pipeline inherits.", **_or_null("#/$defs/Pipeline")},
            "pipelines": {
                "description": "One per table, by name.",
                "type": ["object", "null"],
                "propertyNames": {"minLength": 1},
                "additionalProperties": _or_null("#/$defs/Pipeline"),
            },
            "spark": {"description": "The Spark session.", **_or_null(spark["$ref"])},
            "lease_ttl": {
                "description": ProjectSpec.model_fields["lease_ttl"].description,
                "type": ["string", "integer"],
                "default": show_duration(ProjectSpec.model_fields["lease_ttl"].default),
            },
            "variables": {
                "description": "Values for ${NAME}, where neither --var nor the environment has one.",
                "type": ["object", "null"],
                "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
            },
            "include": {"description": "Other files, or patterns, merged into this one.", "anyOf": text_or_list},
        },
        "$defs": {"Pipeline": pipeline},
    }


def _or_null(ref: str) -> dict[str, Any]:
    return {"anyOf": [{"$ref": ref}, {"type": "null"}]}


def _connection(schema: dict[str, Any], kind: str) -> dict[str, Any]:
    about = {k: v for k, v in schema["properties"]["type"].items() if k in ("title", "description")}
    # Exactly one branch may match, so a variable is no good as the type.
    properties = {**schema["properties"], "type": {**about, "const": kind}}
    return {**schema, "properties": properties, "required": sorted({"type", *schema.get("required", [])})}


def _loose(schema: Any, in_pipeline: bool) -> Any:
    """Lets a `${VAR}` stand for any scalar, and lets the defaults supply whatever a pipeline leaves out."""
    if isinstance(schema, list):
        return [_loose(item, in_pipeline) for item in schema]
    if not isinstance(schema, dict):
        return schema
    loose: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            loose[key] = {name: _loose(option, in_pipeline) for name, option in value.items()}
        elif key == "oneOf":
            # With variables allowed for the tag, more than one member may match.
            loose["anyOf"] = _loose(value, in_pipeline)
        elif not (key == "discriminator" or (key == "required" and in_pipeline)):
            loose[key] = value if key in _ABOUT or key in ("enum", "const") else _loose(value, in_pipeline)
    return _or_variable(loose) if _is_checked_scalar(loose) else loose


def _is_checked_scalar(schema: dict[str, Any]) -> bool:
    kinds = schema.get("type")
    kinds = {kinds} if isinstance(kinds, str) else set(kinds or ())
    narrowed = any(word in schema for word in ("enum", "const", "pattern", "format", "minLength", "maxLength"))
    return narrowed or bool(kinds & {"integer", "number", "boolean"} and "string" not in kinds)


def _or_variable(schema: dict[str, Any]) -> dict[str, Any]:
    about = {key: value for key, value in schema.items() if key in _ABOUT}
    exact = {key: value for key, value in schema.items() if key not in _ABOUT}
    return {**about, "anyOf": [exact, _VARIABLE]}


def _reachable(schema: Any, defs: Mapping[str, Any], seen: frozenset[str] = frozenset()) -> set[str]:
    found: set[str] = set()
    if isinstance(schema, dict):
        ref = schema.get("$ref")
        name = ref.rpartition("/")[2] if isinstance(ref, str) else None
        if name and name in defs and name not in seen:
            found |= {name} | _reachable(defs[name], defs, seen | {name})
        parts: list[Any] = list(schema.values())
    else:
        parts = schema if isinstance(schema, list) else []
    for part in parts:
        found |= _reachable(part, defs, seen)
    return found
