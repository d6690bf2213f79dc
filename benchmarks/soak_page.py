"""docs/soak.md, from what the rounds told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks import growth, memory

Told = dict[str, Any]
TOP = """# Soak

Written by `make soak`, part by part: each says at which commit it was run."""


def with_part(text: str, part: str, done: list[Told]) -> str:
    """The page with one part told anew; of the others it says what it said."""
    _, *sections = text.split("\n## ")
    told = {head: body.strip("\n") for head, _, body in (section.partition("\n") for section in sections)}
    lines = [*PARTS[part].tell(done), "", f"At commit {', '.join(dict.fromkeys(one['commit'] for one in done))}."]
    told[PARTS[part].head] = "\n".join(lines)
    heads = [known.head for known in PARTS.values() if known.head in told]
    return "\n\n".join([TOP, *(f"## {head}\n\n{told[head]}" for head in heads)]) + "\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    body = [f"| {' | '.join(map(str, row))} |" for row in rows]
    return [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *body]


def _crashes(done: list[Told]) -> list[str]:
    rows = []
    for world, mine in _by(done, "source", "mode"):
        rows.append((*world, len(mine), _sum(mine, "killed"), f"{_sum(mine, 'rows'):,}", 0))
    return [
        *_table(["source", "mode", "rounds", "killed", "rows written", "rows missing, stale or doubled"], rows),
        "",
        "To Delta. Each round changes the source, kills a run or a backfill of the command line at a random step (half",
        "of them in the middle of a load), runs once more, now and then fills everything again, and compares every row",
        "and every window; a difference ends the soak. Steps that a run never reached leave it alive: those rounds",
        "count as rounds, not as kills.",
    ]


def _races(done: list[Told]) -> list[str]:
    rows = []
    for world, mine in _by(done, "source", "by", "mode"):
        control = [r for r in mine if "blind lost" in r]
        blind = f"{_sum(control, 'blind lost'):,} of {_sum(control, 'blind rows'):,}" if control else "not tried"
        counts = (len(mine), _sum(mine, "runs"), f"{_sum(mine, 'rows'):,}", _sum(mine, "lost"), _wrong(mine), blind)
        rows.append((*world, *counts, *_lag(mine)))
    heads = ["source", "cursor", "mode", "rounds", "runs", "rows written", "lost", "doubled or invented"]
    heads += ["lost without the look", "mark behind now, median", "worst"]
    return [
        *_table(heads, rows),
        "",
        "Six sessions write all the time: rows one by one and in bulk, transactions that stay open, savepoints,",
        "rollbacks, prepared and XA transactions, copies, scripts, readers that hold a snapshot; the pipeline runs",
        "again and again beside them. Then every row is compared. One race in ten is run once more without the look",
        "and without a delay. The mark waits for the oldest open transaction: how far it is behind is how long those",
        "are, and how long a load takes.",
    ]


def _storms(done: list[Told]) -> list[str]:
    rows = []
    for world, mine in _by(done, "source", "target", "by", "mode"):
        struck = (_sum(mine, "kills"), _sum(mine, "cuts"), _sum(mine, "restarts"))
        rows.append((*world, len(mine), *struck, f"{_sum(mine, 'rows'):,}", _sum(mine, "lost") + _wrong(mine)))
    heads = [
        "source",
        "target",
        "cursor",
        "mode",
        "storms",
        "kills survived",
        "sessions cut",
        "restarts of the state's server",
    ]
    return [
        *_table([*heads, "rows written", "rows missing, stale or doubled"], rows),
        "",
        "The same writers, while runs of the command line are killed together with their JVM. Afterwards ordinary runs",
        "have to make it good, with no repair by hand.",
    ]


def _growth(done: list[Told]) -> list[str]:
    heads, *rows = growth.table(done)
    return [
        *_table(heads, rows),
        "",
        "Seconds of one load of changes through the target's port, in a session that is warm: at keys from all over",
        "the table, and among its newest 2 percent. The same table grows from size to size.",
    ]


def _memory(done: list[Told]) -> list[str]:
    heads, *rows = memory.table(done)
    return [
        *_table(heads, rows),
        "",
        "A `floodmark run` of its own for each, from Postgres; the resident memory of all its processes together,",
        "without the servers.",
    ]


def _by(done: list[Told], *keys: str) -> list[tuple[tuple[str, ...], list[Told]]]:
    worlds = sorted({tuple(r[key] for key in keys) for r in done})
    return [(world, [r for r in done if tuple(r[key] for key in keys) == world]) for world in worlds]


def _sum(done: list[Told], key: str) -> int:
    return sum(r[key] for r in done)


def _wrong(done: list[Told]) -> int:
    return _sum(done, "doubled") + _sum(done, "ghosts")


def _lag(done: list[Told]) -> tuple[str, str]:
    lags = [lag for r in done for lag in r["lags"]]
    return (f"{median(lags):.1f} s", f"{max(lags):.1f} s") if lags else ("", "")


@dataclass(frozen=True)
class Part:
    head: str
    tell: Callable[[list[Told]], list[str]]


PARTS = {
    "rounds": Part("Crashes", _crashes),
    "races": Part("Races", _races),
    "storms": Part("Storms", _storms),
    "growth": Part("Cost as the table grows", _growth),
    "memory": Part("Memory of a first load", _memory),
}
