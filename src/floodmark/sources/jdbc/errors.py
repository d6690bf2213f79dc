"""A driver's errors in words: they come wrapped in Spark's, and Spark's in Java's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from floodmark.errors import ConfigError, FloodmarkError, SourceError
from floodmark.javawords import first_line
from floodmark.retries import sounds_transient
from floodmark.sources.relation import Relation

_UNKNOWN_TYPE = re.compile(r"Unrecognized SQL type - name: (.+), id: ")
_HINTS = (
    (
        re.compile(
            r"not found|not exist|unknown (table|column)|invalid (object|column|identifier)|ORA-00(904|942)", re.I
        ),
        "names are written as the database holds them: many hold ORDERS for what was created as orders",
    ),
    (re.compile(r"password|login|logon|authentication", re.I), "check user and password"),
)


def unknown_type(error: BaseException) -> str | None:
    """The database's word for a type that Spark's reader has no place for."""
    found = _UNKNOWN_TYPE.search(str(error))
    return found[1] if found else None


def explained(error: Exception, relation: Relation, where: str) -> SourceError:
    reason = first_line(error)
    return SourceError(
        f"{relation.name}, at {where}: {reason}",
        table=relation.name,
        declared_at=relation.declared_at,
        hint=next((hint for pattern, hint in _HINTS if pattern.search(reason)), None),
        transient=sounds_transient(error),
    )


def refused_types(found: Sequence[tuple[str, str]], kind: str, relation: Relation, quote: str = '"') -> FloodmarkError:
    """`found` are columns with their types; empty where the database does not say which columns it has."""
    named = ", ".join(f'column "{column}" of {relation.name} is {theirs}' for column, theirs in found)
    column = found[0][0] if found else None
    quoted = f"{quote[0]}{column or 'NAME'}{quote[-1]}"
    return ConfigError(
        f"{named or f'{relation.name} has a column of type {kind}'}, which Spark can't read through JDBC",
        table=relation.name,
        column=column,
        declared_at=relation.declared_at,
        hint=f"select it as text: source: {{query: 'SELECT …, CAST({quoted} AS varchar(4000)) AS {quoted} FROM …'}}, "
        "or leave it out there",
    )
