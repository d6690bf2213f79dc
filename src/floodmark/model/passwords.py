"""Passwords that stand inside an address."""

from __future__ import annotations

import re
from urllib.parse import unquote

IN_URL = re.compile(r"""(://[^\s/?#:@'"]*:)([^\s/?#'"]+)(?=@)""")
IN_PAIRS = re.compile(r"""(\b(?:password|passwd|pwd|secret|token)=)([^\s&;,'"}]+)""", re.I)


def passwords_in(text: str) -> list[str]:
    """Passwords inside `scheme://user:password@host` and `password=…`, as written and as a driver decodes them."""
    found = [match[2] for pattern in (IN_URL, IN_PAIRS) for match in pattern.finditer(text)]
    return [form for password in found for form in dict.fromkeys((password, unquote(password)))]
