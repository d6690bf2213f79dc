"""Writes docs/options.md from the classes that check the options, so that it can't say anything else.

python scripts/write_options.py           write it
python scripts/write_options.py --print   show it
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, SecretStr
from pydantic_core import PydanticUndefined

from floodmark.connections.iceberg import CatalogOptions
from floodmark.model.duration import show_duration
from floodmark.model.rules import ColumnRule, MaskSpec
from floodmark.model.spec import (
    FullSpec,
    PipelineSpec,
    ProjectSpec,
    RetrySpec,
    SequenceSpec,
    SourceSpec,
    SparkSpec,
    TimestampSpec,
    TransformSpec,
)
from floodmark.model.target import HistorySpec, MaintenanceSpec, TargetSpec
from floodmark.registry import Registry

PAGE = Path(__file__).resolve().parents[1] / "docs" / "options.md"
NOT_WRITTEN = {"name", "places", "root", "secrets"}


def page() -> str:
    sections: list[tuple[str, type[BaseModel]]] = [
        ("Top level", ProjectSpec),
        ("pipelines.NAME", PipelineSpec),
        ("source", SourceSpec),
        ("change, by: timestamp", TimestampSpec),
        ("change, by: sequence", SequenceSpec),
        ("change, by: none", FullSpec),
        ("target", TargetSpec),
        ("target.history", HistorySpec),
        ("target.maintenance", MaintenanceSpec),
        ("columns.NAME", ColumnRule),
        ("columns.NAME.mask", MaskSpec),
        ("transform", TransformSpec),
        ("retries", RetrySpec),
        ("spark", SparkSpec),
    ]
    registry = Registry.default()
    sections += [(f"connections, type: {n}", registry.get("connection", n)) for n in registry.names("connection")]
    sections.append(("connections, type: iceberg, catalog", CatalogOptions))
    lines = [
        "# All options",
        "",
        "Generated from the classes that check them (`python scripts/write_options.py`).",
        "",
        "Beside these, `defaults:` takes the keys of a pipeline, `include:` other files, `variables:` values for",
        "`${NAME}`. `${NAME}` and `${NAME:-default}` may stand in any value; `--var NAME=…` wins over the environment.",
        "",
        "A pipeline says what it has of its own and takes the rest from `defaults:`, key by key; a list is replaced as",
        "a whole. So is `change:` where the pipeline names another `by`: a timestamp's `start` or `timezone` means",
        "nothing to a sequence. Of two keys that exclude each other (`column` and `columns`, `table` and `query`) the",
        "pipeline's own wins.",
    ]
    for title, options in sections:
        lines += ["", f"## {title}", "", "| option | type | default | what it is |", "|---|---|---|---|"]
        lines += list(rows(options))
    return "\n".join(lines) + "\n"


def rows(options: type[BaseModel]) -> Iterator[str]:
    for name, field in options.model_fields.items():
        if name not in NOT_WRITTEN or options is CatalogOptions:
            yield f"| `{name}` | {shown_type(field.annotation)} | {default(field)} | {field.description or ''} |"


def default(field: Any) -> str:
    value = field.get_default(call_default_factory=True)
    if field.is_required() or value is PydanticUndefined:
        return "required"
    if isinstance(value, timedelta):
        return f"`{show_duration(value)}`"
    if value in (None, (), {}) or isinstance(value, BaseModel):
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def shown_type(kind: Any) -> str:
    if hasattr(kind, "__metadata__"):
        kind = get_args(kind)[0]  # what is said of a type beside it is for pydantic
    if kind is timedelta:
        return "duration"
    if kind is SecretStr:
        return "secret"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return "section"
    parts = [p for p in get_args(kind) if p not in (type(None), Ellipsis)]
    if "Literal" in str(kind) and all(isinstance(p, str) for p in parts):
        return ", ".join(f"`{p}`" for p in parts)
    if str(kind).startswith("tuple"):
        return "list"
    if "Mapping" in str(kind) or str(kind).startswith("dict"):
        return "text or map" if "str |" in str(kind) else "map"
    names = {"str": "text", "int": "whole number", "bool": "true or false", "datetime": "time"}
    found = list(dict.fromkeys(shown_type(p) for p in parts)) if parts else [getattr(kind, "__name__", str(kind))]
    return " or ".join(names.get(name, name) for name in found)


if __name__ == "__main__":
    if "--print" in sys.argv:
        print(page(), end="")
    else:
        PAGE.write_text(page())
