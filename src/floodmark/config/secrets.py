"""What must not be shown: by the name of an option or variable, or by its place in a URL."""

from __future__ import annotations

import re
from collections.abc import Iterable

from floodmark.model.passwords import IN_PAIRS, IN_URL

HIDDEN = "***"

_SECRET_OPTION = re.compile(
    r"password|passwd|passphrase|secret|salt|token|credential|api_?key|(?:^|[_.-])(?:key|pass|pwd|auth)(?:$|[_.-])",
    re.I,
)
_SECRET_VARIABLE = re.compile(r"PASS|SECRET|SALT|TOKEN|CREDENTIAL|(?:API|ACCESS|PRIVATE|ACCOUNT|STORAGE)_?KEY", re.I)
_OPTION = re.compile(
    r"""(?P<name>[\w.-]+)(?P<colon>["']\s*:\s*|\s*:\s+)
        (?P<value>\$\{\w+\}(?=\s*(?:[,}\]\#]|$))|"(?:\\.|[^"\\])*"|'(?:''|[^'])*'|.+)""",
    re.X,
)
_COLUMN_RULE = re.compile(r"drop\b|\{|\[")
# A bare reference tells nothing, and the reader needs to see which variable it was. One with a default does tell.
_REFERENCE = re.compile(r"""["']?\$\{\w+\}["']?""")


def secret_option(name: str) -> bool:
    """`password`, `api_key`, `access_token`; not `keys`, which are columns."""
    return bool(_SECRET_OPTION.search(name))


def secret_path(path: Iterable[str | int], *, pipeline: bool) -> bool:
    """In a pipeline the names below `columns` and `renames` are the user's own columns, whatever they are called, and
    `key` is a slip for `keys`; only what stands beside them (a column's `salt`) can be an option."""
    names = [step for step in path if isinstance(step, str)]
    if not pipeline:
        return any(map(secret_option, names))
    if names[:1] == ["columns"]:
        names = names[2:]
    elif names[:2] == ["target", "renames"]:
        names = []
    return any(secret_option(name) and name != "key" for name in names)


def secret_variable(name: str) -> bool:
    return bool(_SECRET_VARIABLE.search(name))


def mask_line(line: str, *, pipeline: bool = False) -> str:
    """A line of the file as it may be shown beside an error. Hides too much rather than too little."""

    def mask_option(match: re.Match[str]) -> str:
        a_column = pipeline and (match["name"] == "key" or _COLUMN_RULE.match(match["value"]))
        if not secret_option(match["name"]) or a_column or _REFERENCE.fullmatch(match["value"]):
            # Look again inside the value: `shop: {type: x, password: y}` is one match of the outer key.
            return match["name"] + match["colon"] + mask_line(match["value"], pipeline=pipeline)
        return match["name"] + match["colon"] + HIDDEN

    def mask_password(match: re.Match[str]) -> str:
        return match[0] if _REFERENCE.fullmatch(match[2]) else match[1] + HIDDEN

    line = _OPTION.sub(mask_option, line)
    return IN_PAIRS.sub(mask_password, IN_URL.sub(mask_password, line))


def mask(text: str, secrets: Iterable[str]) -> str:
    # Longest first, or a secret inside another one would leave the rest of it visible.
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text
