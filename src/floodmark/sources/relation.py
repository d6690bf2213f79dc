"""What a pipeline reads: a table or view, or a query of the user's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from floodmark.errors import ConfigError, Place
from floodmark.model.spec import PipelineSpec


@dataclass(frozen=True)
class Relation:
    name: str
    """For messages."""
    sql: str
    """What stands behind FROM, always under the name q."""
    table: str | None
    """Quoted; None for a query."""
    query: str | None
    declared_at: Place | None


def relation_of(spec: PipelineSpec, quoted: Callable[[str], str]) -> Relation:
    """`quoted` writes a declared table name as the database wants it."""
    source = spec.source
    if source.query is None:
        table = quoted(source.table or "")
        return Relation(source.table or "", f"{table} q", table, None, spec.at("source.table"))
    text = _bare(source.query)
    # On a line of its own: a comment at the query's end must not swallow the parenthesis.
    return Relation("the query", f"({text}\n) q", None, text, spec.at("source.query"))


def _bare(query: str) -> str:
    """Without the semicolon at its end, and the comments behind that."""
    lines = query.strip().splitlines()
    while lines and (not lines[-1].strip(" \t;") or lines[-1].lstrip().startswith("--")):
        lines.pop()
    return "\n".join(lines).rstrip("; \t\n")


def check_names(names: Sequence[str], relation: Relation) -> None:
    """`select a.*, b.*` is a fine query, but two columns of one name can't be told apart."""
    doubled = [name for name, count in Counter(names).items() if count > 1 or not name]
    if doubled:
        raise ConfigError(
            f'the query has more than one column "{doubled[0]}"' if doubled[0] else "a column of the query has no name",
            column=doubled[0],
            declared_at=relation.declared_at,
            hint="name each column: select a.id AS id, b.id AS other_id",
        )


def broken_query(reason: str, relation: Relation) -> ConfigError:
    return ConfigError(f"the query fails: {reason}", declared_at=relation.declared_at)
