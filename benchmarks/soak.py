"""The long forms: many rounds of random changes and random crashes, compared row by row after each.

    python benchmarks/soak.py [--rounds 40] [--seed N] [--fresh]

Resumable: what is done is kept in .soak/progress.json, and docs/soak.md is written from it after each round. Each round
changes the source, kills a run or a backfill of the command line at a random step (or in the middle of its load), runs
once more, fills a random range again now and then, and compares every row and every window.
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
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.faults.test_kill import assert_each_window_once  # noqa: E402
from tests.lab import Kind, Lab, ok  # noqa: E402
from tests.mariadb import MariadbServer  # noqa: E402
from tests.services import PostgresServer, run_faulty  # noqa: E402

from floodmark.model.spec import SparkSpec  # noqa: E402
from floodmark.spark import open_session, stop_session  # noqa: E402
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


def write_page(done: list[dict[str, Any]], commit: str, seconds: float) -> None:
    lines = [
        "# Soak",
        "",
        f"Written by `make soak` at commit {commit} after {seconds / 60:.0f} minutes of rounds.",
        "",
        "| source | mode | rounds | killed | rows written | rows missing, stale or doubled |",
        "|---|---|---|---|---|---|",
    ]
    for source, mode in WORLDS:
        mine = [r for r in done if (r["source"], r["mode"]) == (source, mode)]
        killed, rows = sum(r["killed"] for r in mine), sum(r["rows"] for r in mine)
        lines.append(f"| {source} | {mode} | {len(mine)} | {killed} | {rows:,} | 0 |")
    lines += [
        "",
        "To Delta. Each round changes the source, kills a run or a backfill of the command line at a random step (half",
        "of them in the middle of a load), runs once more, now and then fills everything again, and compares every row",
        "and every window; a difference ends the soak. Steps that a run never reached leave it alive: those rounds",
        "count as rounds, not as kills.",
    ]
    PAGE.write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40, help="for each source and mode")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fresh", action="store_true", help="forget what was done")
    options = parser.parse_args()
    if options.fresh:
        shutil.rmtree(PROGRESS.parent, ignore_errors=True)
    PROGRESS.parent.mkdir(exist_ok=True)
    progress = json.loads(PROGRESS.read_text()) if PROGRESS.exists() else {"rounds": [], "seconds": 0.0}
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    with PostgresServer() as postgres, MariadbServer() as mariadb, tempfile.TemporaryDirectory() as scratch:
        needs = ["delta", "postgres", "mysql"]
        spark = open_session(SparkSpec(), needs=needs, log_file=Path(scratch, "spark.log"))
        servers = {"postgres": postgres, "mariadb": mariadb}
        labs = [Lab(Path(scratch, f"{k}-{m}"), k, servers[k].create_database(), spark) for k, m in WORLDS]
        while (number := len(progress["rounds"])) < len(WORLDS) * options.rounds:
            which, began = number % len(WORLDS), time.monotonic()
            done = one_round(labs[which], WORLDS[which][1], options.seed * 1_000_003 + number)
            progress["rounds"].append(done)
            progress["seconds"] += time.monotonic() - began
            print(f"{number + 1}: {done}", flush=True)
            PROGRESS.write_text(json.dumps(progress))
            write_page(progress["rounds"], commit, progress["seconds"])
        stop_session(spark)


if __name__ == "__main__":
    main()
