"""What a pipeline inherits from `defaults:`: everything it does not say itself, and nothing that contradicts it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from floodmark.config.tree import Node
from floodmark.model.options import Options
from floodmark.model.spec import ChangeSpec

_EITHER_OR = (
    ("column", "columns"),
    ("partition_by", "cluster_by"),
    ("sql", "python"),
    ("table", "query", "tables"),
    ("exclude", "table"),
    ("exclude", "query"),
)


def with_defaults(pipeline: Node, defaults: Node | None) -> Node:
    if defaults is None or not isinstance(pipeline.value, dict):
        return pipeline
    merged = over(pipeline, defaults)
    change = merged.children.get("change")
    if change is not None:
        own = pipeline.children.get("change")
        fitting = _fitting(change, set(own.children) if own else set())
        merged = replace(merged, value={**merged.value, "change": fitting})
    return merged


def over(above: Node, below: Node) -> Node:
    """Mappings are merged key by key; anything else, lists too, is replaced."""
    if not isinstance(above.value, dict) or not isinstance(below.value, dict):
        return above
    shut_out = set(_shut_out(above, below))
    inherited = {key: node for key, node in below.value.items() if key not in shut_out}
    own = {key: over(node, inherited[key]) if key in inherited else node for key, node in above.value.items()}
    return replace(above, value={**inherited, **own})


def _shut_out(above: Node, below: Node) -> Iterator[str]:
    ours, theirs = above.children, below.children
    # Another way of finding changes has options of its own: a timestamp's `start` means nothing to a sequence.
    if "by" in ours and "by" in theirs and ours["by"].value != theirs["by"].value:
        yield from theirs
    for group in _EITHER_OR:
        for mine in group:
            if mine in ours and ours[mine].value is not None:
                yield from (rival for rival in group if rival != mine)


def _fitting(change: Node, own: set[str]) -> Node:
    """`defaults: {change: {nulls: skip}}` is for those that have a cursor; `by: none` must not trip over it. A key that
    no kind of change knows stays, to be reported."""
    by = change.children.get("by")
    options = {tag: set(cls.model_fields) for cls in _change_classes() for tag in _tags(cls)}
    if by is None or not isinstance(by.value, str) or by.value not in options:
        return change
    known = set().union(*options.values())
    fits = {k: v for k, v in change.value.items() if k in own or k in options[by.value] or k not in known}
    return replace(change, value=fits)


def _change_classes() -> tuple[type[Options], ...]:
    return get_args(get_args(ChangeSpec)[0])


def _tags(cls: type[Options]) -> tuple[str, ...]:
    return get_args(cls.model_fields["by"].annotation)
