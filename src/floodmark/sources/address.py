"""A database's URL: split, and never shown where it can't be."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qsl, unquote, urlsplit


def check_url(text: str, schemes: Sequence[str]) -> None:
    """Nothing of a url that can't be split is ever shown: what looks like its host may be half of the password."""
    if text.partition("://")[0] not in schemes:
        raise ValueError(f"the url must begin with {schemes[0]}://")
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise ValueError("the url's port is not a number, or its password is not percent-encoded") from None
    if port == 0 or "@" in url.path + url.query + url.fragment or (url.username or "").count("@"):
        raise ValueError("the url can't be split: percent-encode the password (@ is %40, / is %2F, : is %3A)")


def url_parts(text: str) -> dict[str, str]:
    """Host, port, database, user and password where the url has them, beside its own parameters."""
    url = urlsplit(text)
    named = {
        "host": url.hostname,
        "port": str(url.port) if url.port else None,
        "database": unquote(url.path.lstrip("/")),
        "user": unquote(url.username or ""),
        "password": unquote(url.password or ""),
    }
    return dict(parse_qsl(url.query)) | {k: v for k, v in named.items() if v}
