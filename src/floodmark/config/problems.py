"""All that is wrong with a project, told at once: nobody likes to mend a file one error per run."""

from __future__ import annotations

from floodmark.config.secrets import mask
from floodmark.errors import ConfigError, Place
from floodmark.model.passwords import passwords_in


class Problems:
    def __init__(self) -> None:
        self._found: dict[tuple[Place | None, str], ConfigError] = {}

    def add(
        self,
        message: str,
        place: Place | None,
        *,
        path: str = "",
        hint: str | None = None,
        pipeline: str | None = None,
    ) -> None:
        """What was declared in Python has no line to point at, so its message names the `path`."""
        if place is None and path and path not in message:
            message = f"{path}: {message}"
        # A URL may stand anywhere, also where a name was wanted.
        message = mask(message, passwords_in(message))
        self.keep(ConfigError(message, declared_at=place, hint=hint, pipeline=pipeline))

    def keep(self, error: ConfigError) -> None:
        # A default that is wrong is wrong in every pipeline that inherits it, and still one problem.
        self._found.setdefault((error.declared_at, error.message), error)

    def __bool__(self) -> bool:
        return bool(self._found)

    def raise_all(self) -> None:
        """Raises the first error of the first file; its hint lists the others."""
        if not self._found:
            return
        files = list(dict.fromkeys(place.file if place else "" for place, _ in self._found))
        first, *others = sorted(self._found.values(), key=lambda error: _position(error, files))
        if others:
            heading = f"{len(others)} more problem{'s' if len(others) > 1 else ''}:"
            lines = [first.hint] if first.hint else []
            first.hint = "\n".join([*lines, heading, *(f"  {_one_line(error)}" for error in others)])
        raise first


def _position(error: ConfigError, files: list[str]) -> tuple[int, int]:
    place = error.declared_at
    return (files.index(place.file), place.line) if place else (files.index(""), 0)


def _one_line(error: ConfigError) -> str:
    place = f"{error.declared_at}  " if error.declared_at else ""
    hint = f" ({error.hint.splitlines()[0]})" if error.hint else ""
    return f"{place}{error.message}{hint}"
