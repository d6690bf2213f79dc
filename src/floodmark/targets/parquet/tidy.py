"""What nobody needs any more: files that loads have replaced, a while after that, and those of loads that never
committed."""

from __future__ import annotations

from datetime import datetime, timedelta

from floodmark.targets.parquet.manifests import Manifest, Manifests, name_of

ATTEMPTS = "_floodmark/attempts"
AT_ONCE = 100
"""Manifests that one load looks at."""
KEPT = 1000
"""Commits that are remembered."""


def clean(manifests: Manifests, newest: Manifest, now: datetime, keep: timedelta) -> tuple[int, int]:
    """Removes what was replaced longer ago than `keep`: readers that began before have ended. Says up to which version
    that is done, and which manifests are gone."""
    cleaned = newest.cleaned
    for version in range(cleaned + 1, min(newest.version, cleaned + AT_ONCE) + 1):
        manifest = manifests.find(version)
        if manifest is not None and manifest.head.at + keep > now:
            break
        manifests.place.remove(f"data/{name}" for name in (() if manifest is None else manifest.removed))
        cleaned = version
    last = min(cleaned, newest.version - KEPT, newest.forgotten + AT_ONCE)
    if last <= newest.forgotten:
        return cleaned, newest.forgotten
    manifests.place.remove(name_of(version) for version in range(newest.forgotten + 1, last + 1))
    return cleaned, last


def remove_dead(manifests: Manifests, newest: Manifest) -> None:
    """Files of attempts that can't commit any more: their version is another's. Only then: one that is merely slow
    could still name files that are gone."""
    for name in manifests.place.names(ATTEMPTS):
        version = int(name.partition("-")[0])
        if version > newest.version:
            continue
        committed = manifests.find(version)
        if committed is not None and committed.attempt != name:
            manifests.place.remove_folder(f"data/{name}")
        manifests.place.remove([f"{ATTEMPTS}/{name}"])
