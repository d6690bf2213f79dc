"""A database's URL, taken apart. SQLAlchemy's grammar: what is known of such URLs elsewhere holds here too."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote

_URL = re.compile(
    r"""(?P<scheme>[\w+]+)://
    (?:(?P<user>[^:/]*)(?::(?P<password>[^@]*))?@)?
    (?:\[(?P<bracketed>[^/?]+)\]|(?P<host>[^/:?]+))?(?::(?P<port>[^/?]*))?
    (?:/(?P<database>[^?]*))?
    (?:\?(?P<settings>.*))?""",
    re.X,
)


@dataclass(frozen=True)
class Address:
    """None is what the URL does not say: the driver has its own answer."""

    kind: str
    """The scheme, without the driver that may be named in it: we ship with one for each."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    host: str | None = None
    port: int | None = None
    database: str | None = None
    settings: dict[str, str] = field(default_factory=dict, repr=False)
    """The driver's own, after the `?`."""

    @property
    def shown(self) -> str:
        """Without the password; and without the settings, where another may hide."""
        host = f"[{self.host}]" if self.host and ":" in self.host else self.host or ""
        hidden = "" if self.password is None else ":***"
        user = "" if self.user is None else f"{quote(self.user, safe=' +')}{hidden}@"
        port = "" if self.port is None else f":{self.port}"
        return f"{self.kind}://{user}{host}{port}" + ("" if self.database is None else f"/{self.database}")

    def parts(self, **names: str) -> dict[str, str | int]:
        """What is said, under the names that a driver has for it."""
        said = {name: getattr(self, name) for name in ("user", "password", "host", "port", "database")}
        return {names.get(name, name): value for name, value in said.items() if value}


def parse_address(url: str) -> Address:
    """Raises ValueError."""
    match = _URL.match(url)
    if match is None:
        raise ValueError("not the URL of a database")
    settings: dict[str, str] = {}
    for name, value in parse_qsl(match["settings"] or ""):
        # libpq takes several hosts, and writes them with commas.
        settings[name] = f"{settings[name]},{value}" if name in settings else value
    user, password, database = (
        None if text is None else unquote(text) for text in (match["user"], match["password"], match["database"])
    )
    return Address(
        kind=match["scheme"].partition("+")[0].lower(),
        user=user,
        password=password,
        host=match["host"] or match["bracketed"],
        port=int(match["port"]) if match["port"] else None,
        database=database,
        settings=settings,
    )
