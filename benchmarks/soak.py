"""The long forms: many rounds of random changes, writers and crashes, compared row by row after each.

    python benchmarks/soak.py [--rounds 40] [--races 60] [--kills 100] [--seed N] [--fresh]
    python benchmarks/soak.py --storms | --growth | --memory [--fresh]

Resumable: what is done is kept in .soak/progress.json, and its part of docs/soak.md written after each round. A round
changes the source, kills a run or a backfill of the command line at a random step (or in the middle of its load), runs
once more, fills a random range again now and then, and compares every row and every window. Races and storms are in
soak_races.py; `--storms` goes to those at once. `--growth` and `--memory` measure instead, as growth.py and memory.py
do, at full size.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import growth, memory  # noqa: E402
from benchmarks.soak_page import PARTS, with_part  # noqa: E402
from benchmarks.soak_races import Ground, is_clean, race_round, storm_round  # noqa: E402
from tests.faults.test_kill import assert_each_window_once  # noqa: E402
from tests.lab import Kind, Lab, ok  # noqa: E402
from tests.mariadb import MariadbServer  # noqa: E402
from tests.services import PostgresServer, run_faulty  # noqa: E402

from floodmark.model.spec import SparkSpec  # noqa: E402
from floodmark.spark.session import open_session, stop_session  # noqa: E402
from floodmark.testing.faults import STEPS  # noqa: E402

WORLDS: tuple[tuple[Kind, str], ...] = (
    ("postgres", "append"),
    ("postgres", "upsert"),
    ("mariadb", "append"),
    ("mariadb", "upsert"),
)
PROGRESS = ROOT / ".soak" / "progress.json"
PAGE = ROOT / "docs" / "soak.md"


def random_fault(rng: random.Random) -> str:
    """Half of them in the middle of a load, where it hurts most."""
    if rng.random() < 0.5:
        return f"target.load:before=kill@{rng.uniform(0.1, 6):.2f}"
    kind = rng.choice(list(STEPS))
    method = rng.choice([m for m in STEPS[kind] if m not in ("count_nulls", "find", "beat")])
    return f"{kind}.{method}#{rng.choice([1, 1, 2])}:{rng.choice(['before', 'after'])}=kill"


def change(lab: Lab, mode: str, rng: random.Random) -> int:
    """Inserts with ties; in upsert also updates of old rows. Returns the rows written."""
    inserts = rng.randint(1, 3000)
    for statement in INSERTS[lab.kind]:
        lab.execute(statement.format(count=inserts))
    if mode == "append":
        return inserts
    part = rng.randint(2, 50)
    lab.execute(UPDATES[lab.kind].format(part=part))
    return inserts + sum(1 for row in lab.source_rows() if row[0] % part == 0)


INSERTS = {
    "postgres": [
        "INSERT INTO orders SELECT coalesce((SELECT max(id) FROM orders), 0) + i, 'v' || i, "
        "date_trunc('second', now() - interval '1 second') + (i % 3) * interval '1 microsecond' "
        "FROM generate_series(1, {count}) i"
    ],
    "mariadb": [
        "INSERT INTO orders SELECT (SELECT coalesce(max(id), 0) FROM orders o) + seq, concat('v', seq), "
        "date_sub(utc_timestamp(), interval 1 second) + interval (seq % 3) microsecond FROM seq_1_to_{count}"
    ],
}
UPDATES = {
    "postgres": "UPDATE orders SET val = val || '*', updated_at = now() - interval '1 second' WHERE id % {part} = 0",
    "mariadb": "UPDATE orders SET val = concat(val, '*'), updated_at = date_sub(utc_timestamp(6), interval 1 second) "
    "WHERE id % {part} = 0",
}


def one_round(lab: Lab, mode: str, seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    batch_rows = rng.choice([400, 1500, 100_000])
    written = change(lab, mode, rng)
    lab.write(mode=mode, batch_rows=batch_rows)
    fault = random_fault(rng)
    command = "backfill" if rng.random() < 0.3 and (lab.root / "lake").exists() else "run"
    killed = run_faulty(fault, command, "orders", cwd=lab.root).returncode == -signal.SIGKILL
    project = lab.project(mode=mode, batch_rows=batch_rows)
    ok(project.run("orders"))
    if rng.random() < 0.3:
        ok(project.backfill("orders"))
    lab.assert_equal()
    assert_each_window_once(lab, project.store.get)
    project.close()
    told = {"source": lab.kind, "mode": mode, "seed": seed, "command": command, "fault": fault}
    return {**told, "killed": killed, "rows": written}


@dataclass
class Soak:
    """What is done so far, kept after each round."""

    progress: dict[str, Any]
    commit: str

    @classmethod
    def resumed(cls) -> Soak:
        PROGRESS.parent.mkdir(exist_ok=True)
        kept = json.loads(PROGRESS.read_text()) if PROGRESS.exists() else {}
        said = ["git", "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(said, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        return cls({part: [] for part in PARTS} | kept, commit)

    def go_on(self, part: str, enough: Callable[[list[dict[str, Any]]], bool], one: Callable[[int], Any]) -> None:
        done = self.progress[part]
        while not enough(done):
            told = one(len(done))
            self.keep(part, told)
            if part != "rounds" and not is_clean(told):
                raise SystemExit(f"a difference: {told}")

    def keep(self, part: str, told: dict[str, Any]) -> None:
        done = self.progress[part]
        done.append({**told, "commit": self.commit})
        print(f"{part} {len(done)}: {told}", flush=True)
        PROGRESS.write_text(json.dumps(self.progress))
        PAGE.write_text(with_part(PAGE.read_text(), part, done))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40, help="for each source and mode")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fresh", action="store_true", help="forget what was done")
    parser.add_argument("--races", type=int, default=60, help="for each source")
    parser.add_argument("--race-seconds", type=float, default=10, help="how long the writers of a race write")
    parser.add_argument("--kills", type=int, default=100, help="that storms have to survive, in all")
    parser.add_argument("--storms", action="store_true", help="no rounds and no races")
    parser.add_argument("--growth", action="store_true", help="measure changes beside growing tables, and no more")
    parser.add_argument("--memory", action="store_true", help="measure the memory of first loads, and no more")
    parser.add_argument("--sizes", type=int, nargs="+", help="rows of the tables to measure with")
    options = parser.parse_args()
    if options.growth or options.memory:
        measure_all(options)
        return
    if options.fresh:
        shutil.rmtree(PROGRESS.parent, ignore_errors=True)
    if options.storms:
        options.rounds = options.races = 0
    with ExitStack() as stack:
        postgres, store = stack.enter_context(PostgresServer()), stack.enter_context(PostgresServer())
        mariadb = stack.enter_context(MariadbServer())
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        needs = ["delta", "iceberg", "postgres", "mysql"]
        spark = open_session(SparkSpec(), needs=needs, log_file=scratch / "spark.log")
        stack.callback(stop_session, spark)
        ground = Ground({"postgres": postgres, "mariadb": mariadb}, store, scratch, spark)
        soak_all(Soak.resumed(), ground, options)


def measure_all(options: argparse.Namespace) -> None:
    soak, scratch = Soak.resumed(), PROGRESS.parent / "growth"
    for part in ("growth", "memory"):
        if options.fresh and getattr(options, part):
            soak.progress[part].clear()
    if options.growth:
        if options.fresh:
            shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(exist_ok=True)
        asked = growth.Asked(sorted(options.sizes or growth.SIZES), growth.CHANGES, growth.ROUNDS)
        for kind in growth.TARGETS:
            growth.measure(kind, asked, scratch, soak.progress["growth"], partial(soak.keep, "growth"))
        shutil.rmtree(scratch)
    if options.memory:
        sizes = sorted(options.sizes or memory.SIZES)
        memory.measure(memory.TARGETS, sizes, soak.progress["memory"], partial(soak.keep, "memory"))


def soak_all(soak: Soak, ground: Ground, options: argparse.Namespace) -> None:
    labs = [Lab(ground.scratch / f"{k}-{m}", k, ground.servers[k].create_database(), ground.spark) for k, m in WORLDS]
    seed = options.seed * 1_000_003

    def crash(number: int) -> dict[str, Any]:
        which = number % len(WORLDS)
        return one_round(labs[which], WORLDS[which][1], seed + number)

    soak.go_on("rounds", lambda done: len(done) >= len(WORLDS) * options.rounds, crash)
    soak.go_on(
        "races",
        lambda done: len(done) >= len(ground.servers) * options.races,
        lambda number: race_round(ground, number, seed + number, options.race_seconds),
    )
    soak.go_on(
        "storms",
        lambda done: sum(r["kills"] for r in done) >= options.kills,
        lambda number: storm_round(ground, number, seed + number),
    )


if __name__ == "__main__":
    main()
