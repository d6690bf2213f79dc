"""How SQL writes names and texts: in double quotes and single ones, those inside doubled."""

from __future__ import annotations

import re

from floodmark.errors import ConfigError, Place

_PART = r'(?:"(?:[^"]|"")+"|[^".]+)'


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def split_name(name: str, declared_at: Place | None = None) -> list[str]:
    """`schema.table`, capitals and all as they are. A part that holds a dot or a double quote itself is written as in
    SQL: in double quotes, with those inside it doubled."""
    if re.fullmatch(rf"{_PART}(?:\.{_PART})*", name) is None:
        raise ConfigError(
            f"{name!r} is not the name of a table",
            table=name,
            declared_at=declared_at,
            hint="a part with a dot or a double quote in it goes in double quotes, with those inside it doubled: "
            """'public."odd.name"', 'public."an ""odd"" name"'""",
        )
    return [p[1:-1].replace('""', '"') if p.startswith('"') else p for p in re.findall(_PART, name)]
