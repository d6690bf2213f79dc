"""The soak's races and storms: one round each, told as plain numbers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.lab import Kind
from tests.mariadb import MariadbServer
from tests.races import LOOK, NO_LOOK, WORLDS, Race, RaceLab
from tests.services import PostgresServer
from tests.storm_ends import EndKind, end_of
from tests.storms import Storm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Told = dict[str, Any]
KINDS: tuple[Kind, ...] = ("postgres", "mariadb")
RACE_WORLDS = tuple((kind, by, mode) for by, mode in WORLDS for kind in KINDS)
"""The databases take turns, so that a soak that is cut short has been to both."""
ENDS: tuple[EndKind, ...] = ("delta", "iceberg", "postgres", "mariadb")
STORM_WORLDS = tuple(
    (KINDS[(place + number) % 2], by, mode, end)
    for place, (by, mode) in enumerate(WORLDS)
    for number, end in enumerate(ENDS)
)
"""Every target in turn, under each cursor and mode, from a source that is another each time."""
CONTROL = 10
"""One race in so many is run without the look as well: it has to lose rows."""
KILLS_PER_STORM = 6


@dataclass(frozen=True)
class Ground:
    """Where the rounds happen; each gets a database and a folder of its own."""

    servers: Mapping[Kind, PostgresServer | MariadbServer]
    store: PostgresServer
    """For the state alone: storms restart it."""
    scratch: Path
    spark: SparkSession

    @contextmanager
    def lab(self, kind: Kind, end: EndKind = "delta") -> Iterator[RaceLab]:
        url, state, root = self.servers[kind].create_database(), self.store.create_database(), self.scratch / "race"
        theirs = self.servers[end].create_database() if end in ("postgres", "mariadb") else ""
        try:
            yield RaceLab.into(end_of(end, root, theirs), root, kind, url, self.spark, state=state)
        finally:
            self.servers[kind].drop_database(url)
            self.store.drop_database(state)
            if end in ("postgres", "mariadb"):
                self.servers[end].drop_database(theirs)
            shutil.rmtree(root, ignore_errors=True)


def race_round(ground: Ground, number: int, seed: int, seconds: float) -> Told:
    kind, by, mode = RACE_WORLDS[number % len(RACE_WORLDS)]
    told: Told = {"source": kind, "by": by, "mode": mode, "seed": seed}
    with ground.lab(kind) as lab:
        raced = Race(lab, by, mode, seed, LOOK, seconds=seconds, pause=seconds / 2).run()
    found = raced.difference
    told |= {"rows": raced.written, "runs": raced.runs, "lags": list(raced.lags)}
    told |= {"lost": raced.lost, "doubled": found.doubled, "ghosts": found.ghosts}
    if number // len(RACE_WORLDS) % CONTROL == 0:
        with ground.lab(kind) as lab:
            blind = Race(lab, by, mode, seed, NO_LOOK, seconds=seconds, pause=seconds / 2).run()
        told |= {"blind rows": blind.written, "blind lost": blind.lost}
    return told


def storm_round(ground: Ground, number: int, seed: int) -> Told:
    kind, by, mode, end = STORM_WORLDS[number % len(STORM_WORLDS)]
    with ground.lab(kind, end) as lab:
        survived = Storm(lab, ground.store, by, mode, seed, rounds=KILLS_PER_STORM).run()
    found = survived.difference
    told: Told = {"source": kind, "target": end, "by": by, "mode": mode, "seed": seed, "rows": survived.written}
    told |= {"kills": survived.kills, "cuts": survived.cuts, "restarts": survived.restarts}
    return told | {"lost": found.missing + found.stale, "doubled": found.doubled, "ghosts": found.ghosts}


def is_clean(told: Told) -> bool:
    return not (told["lost"] or told["doubled"] or told["ghosts"])
