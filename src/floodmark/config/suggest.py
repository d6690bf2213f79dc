"""Did you mean?"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def closest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    by_folded = {candidate.casefold(): candidate for candidate in known}
    found = get_close_matches(name.casefold(), by_folded, n=1, cutoff=cutoff)
    return by_folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str], label: str) -> str:
    """`did you mean table? Known keys: connection, table`, or only the second half when nothing is near."""
    names = list(known)
    near = closest(name, names)
    listing = f"{label}: {', '.join(names)}" if names else f"{label}: none"
    return f"did you mean {near}? {listing}" if near else listing
