"""From where pydantic saw an error to the user's own path, and to the class that declares the options there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from floodmark.config.tree import Node, Path
from floodmark.model.spec import PipelineSpec

NOT_WRITTEN = ("name", "places")
"""Options of PipelineSpec that come from the file's shape, not from its words."""


@dataclass(frozen=True)
class Spot:
    """`owner` and `field` declare the last step of `path`; `models` are what may stand there."""

    path: Path
    owner: type[BaseModel] | None
    field: FieldInfo | None
    models: tuple[type[BaseModel], ...]


def follow(cls: type[BaseModel], loc: Path) -> Spot:
    """pydantic names the member of a union as one more step (`change.timestamp.column`); the file has no such step."""
    spot = Spot((), None, None, (cls,))
    for step in loc:
        several = len(spot.models) > 1
        chosen = tuple(m for m in spot.models if _is_named(m, step) or (several and _answers_to(m, step)))
        if chosen:
            spot = Spot(spot.path, spot.owner, spot.field, chosen[:1])
            continue
        owner = spot.models[0] if len(spot.models) == 1 else None
        field = options_of(owner).get(str(step)) if owner else None
        # Below a list or a map the step is an index or a name: what may stand there stays the same.
        models = tuple(models_in(field.annotation)) if field else spot.models
        spot = Spot((*spot.path, step), owner, field or (spot.field if isinstance(step, int) else None), models)
    return spot


def trim(path: Path, node: Node) -> Path:
    """As far as the user wrote it: the rest are pydantic's names for the members of a union."""
    kept: list[str | int] = []
    here: Node | None = node
    for step in path:
        here = here.child(step) if here else None
        if here is None:
            break
        kept.append(step)
    return tuple(kept)


def options_of(cls: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """Those that a user may write, by the name that is written."""
    hidden = NOT_WRITTEN if cls is PipelineSpec else ()
    return {field.alias or name: field for name, field in cls.model_fields.items() if name not in hidden}


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


def choices_in(annotation: Any) -> Iterator[str]:
    for part in get_args(annotation):
        if get_origin(annotation) is Literal:
            yield str(part)
        else:
            yield from choices_in(part)


def _is_named(model: type[BaseModel], step: str | int) -> bool:
    """A model with a validator goes by `function-after[validator(), Model]`."""
    return step == model.__name__ or str(step).endswith(f"(), {model.__name__}]")


def _answers_to(model: type[BaseModel], step: str | int) -> bool:
    tags: Iterator[object] = (tag for field in model.model_fields.values() for tag in choices_in(field.annotation))
    return step in tags
