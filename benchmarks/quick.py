"""How long a small change takes from Postgres into Delta: `floodmark run` against a dlt script, side by side.

    python benchmarks/quick.py [--rows 5000000] [--changes 10000] [--rounds 3] [--only "no change"] [--write]

Both are processes of their own, see the same changes, and take turns in going first, so that whatever else the machine
does falls on both. Seconds are this machine's; the ratios are what counts. After each round both copies must hold what
the source holds: a run that left rows behind would look quick. `--write` puts the figures into docs/speed.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow
from deltalake import DeltaTable, QueryBuilder

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.orders import FACTS, Facts, Orders  # noqa: E402
from tests.services import PostgresServer  # noqa: E402

from floodmark.spark.jars import jars_for  # noqa: E402

PAGE = ROOT / "docs" / "speed.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
PEERS = ROOT / ".tools" / "peers" / "bin" / "python"

PROJECT = """\
connections:
  shop: {{type: postgres, url: "{url}"}}
  lake: {{type: delta, path: lake}}
pipelines:
  orders:
    source: {{connection: shop, table: public.orders}}
    change: {{by: timestamp, column: updated_at}}
    target: {{connection: lake, table: orders, mode: upsert, keys: [order_id]}}
spark: {{resident: {resident}, archive: {archive}}}
"""


@dataclass(frozen=True)
class Case:
    name: str
    changes: int = 0
    resident: str = "off"
    archive: str = "on"
    first_ever: bool = False
    """Nothing in the cache but the jars, as on a machine where Floodmark never ran."""
    unseen: int = 1
    """Rounds before those that count, where runs find what earlier ones made."""


class Floodmark:
    name = "floodmark"

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.table = folder / "lake" / "orders"
        self.env: dict[str, str] = {}
        folder.mkdir()

    def prepare(self, case: Case) -> None:
        self.env = {"FLOODMARK_CACHE": str(self._cache("fresh" if case.first_ever else "cache"))}
        told = PROJECT.format(url=self.url, resident=case.resident, archive=case.archive)
        (self.folder / "floodmark.yml").write_text(told)

    def settle(self, case: Case) -> None:
        """What a run left to the background would slow down whoever goes next."""
        deadline = time.monotonic() + 600
        while case.archive == "on" and case.resident == "off" and not self._archives() and time.monotonic() < deadline:
            time.sleep(1)

    def _archives(self) -> list[Path]:
        return list((self.folder / "cache" / "archives").glob("*.size"))

    def end(self) -> None:
        subprocess.run(
            [sys.executable, "-m", "floodmark.cli.main", "spark", "stop", "--now"], cwd=self.folder, check=True
        )

    def command(self) -> list[str]:
        return [sys.executable, "-m", "floodmark.cli.main", "run", "orders"]

    def _cache(self, name: str) -> Path:
        """Not the user's own: what is in it must be known."""
        cache = self.folder / name
        (cache / "jars").mkdir(parents=True, exist_ok=True)
        for jar in jars_for(["delta", "postgres"]):
            if not (cache / "jars" / jar.name).exists():
                shutil.copy2(jar, cache / "jars")
        return cache


class Dlt:
    name = "dlt"

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.table = folder / "lake" / "shop" / "orders"
        # Its packages are its own, whatever path leads to Floodmark's; telemetry would wait for the network.
        self.env = {"RUNTIME__DLTHUB_TELEMETRY": "false", "PYTHONPATH": ""}
        folder.mkdir()

    def prepare(self, case: Case) -> None:
        """Knows no cases: it keeps nothing between runs but its state."""

    def settle(self, case: Case) -> None:
        """Leaves nothing to the background."""

    def end(self) -> None:
        """Leaves nothing behind."""

    def command(self) -> list[str]:
        return [str(PEERS), str(ROOT / "benchmarks" / "peer_dlt.py"), self.url, str(self.folder)]


Tool = Floodmark | Dlt


@dataclass
class Figures:
    """Seconds by tool, one for each round that counts."""

    name: str
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"floodmark": [], "dlt": []})

    def cells(self) -> tuple[str, ...]:
        ours, theirs = (statistics.median(self.seconds[tool]) for tool in ("floodmark", "dlt"))
        spread = [f"{min(s):.2f}–{max(s):.2f}" for s in self.seconds.values()]
        return (self.name, f"{ours:.2f} s", spread[0], f"{theirs:.2f} s", spread[1], f"{theirs / ours:.2f}")


HEADS = ("", "floodmark", "min–max", "dlt", "min–max", "dlt / floodmark")


def timed(tool: Tool) -> float:
    began = time.perf_counter()
    # Not a pipe: a Spark that stays would hold it open.
    with (tool.folder / "out.log").open("w+") as log:
        done = subprocess.run(
            tool.command(), cwd=tool.folder, env={**os.environ, **tool.env}, stdout=log, stderr=log, check=False
        )
        seconds = time.perf_counter() - began
        if done.returncode:
            log.seek(0)
            raise SystemExit(f"{tool.name} ended with {done.returncode}\n{log.read()[-4000:]}")
    return seconds


def compare(orders: Orders, tools: list[Tool]) -> None:
    expected = orders.facts()
    for tool in tools:
        answer = QueryBuilder().register("orders", DeltaTable(str(tool.table))).execute(FACTS).read_all()
        if (found := Facts(*(column[0].as_py() for column in pyarrow.table(answer).columns))) != expected:
            raise SystemExit(f"{tool.name} holds {found}, the source {expected}")


def measure(case: Case, orders: Orders, tools: list[Tool], rounds: int) -> Figures:
    figures = Figures(case.name)
    for number in range(1 - case.unseen, rounds + 1):
        if case.changes:
            orders.change(case.changes)
        for tool in tools if number % 2 else tools[::-1]:
            tool.prepare(case)
            seconds = timed(tool)
            tool.settle(case)
            if number > 0:
                figures.seconds[tool.name].append(seconds)
        compare(orders, tools)
    return figures


def first_load(orders: Orders, tools: list[Tool]) -> Figures:
    figures = Figures(f"first load of {orders.rows:,} rows")
    for tool in tools:
        tool.prepare(Case(figures.name, archive="off"))
        figures.seconds[tool.name].append(timed(tool))
    compare(orders, tools)
    return figures


def cases(changes: int) -> Iterator[Case]:
    yield Case("no change", archive="off")
    # Java compiles what it has seen often: the fifth run is as quick as the fiftieth.
    yield Case(f"{changes:,} changes, warm", changes, resident="on", archive="off", unseen=4)
    yield Case(f"{changes:,} changes, first ever", changes, archive="off", first_ever=True, unseen=0)
    yield Case(f"{changes:,} changes, cold", changes)


def write(lines: list[str]) -> None:
    before, rest = PAGE.read_text().split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(before + "\n".join([BEGIN, *lines, END]) + after)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="cases with this in their name; the first load is done in any case")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/speed.md")
    asked = parser.parse_args()
    if not PEERS.exists():
        raise SystemExit("dlt is not installed: run scripts/setup-peers.sh")
    lines = [f"| {' | '.join(HEADS)} |", "|---" + "|---:" * (len(HEADS) - 1) + "|"]
    with PostgresServer() as server, tempfile.TemporaryDirectory() as scratch:
        orders = Orders(server, asked.rows)
        tools: list[Tool] = [Floodmark(Path(scratch, "floodmark"), orders.url), Dlt(Path(scratch, "dlt"), orders.url)]
        print("\n".join(lines), flush=True)
        for case in (None, *(case for case in cases(asked.changes) if asked.only in case.name)):
            figures = measure(case, orders, tools, asked.rounds) if case else first_load(orders, tools)
            for tool in tools:
                tool.end()
            lines.append(f"| {' | '.join(figures.cells())} |")
            print(lines[-1], flush=True)
    load = "/".join(f"{value:.1f}" for value in os.getloadavg())
    lines += ["", f"Medians of {asked.rounds} rounds, {os.cpu_count()} cores, load average at the end {load}."]
    print("\n".join(lines[-2:]))
    if asked.write:
        write(lines)


if __name__ == "__main__":
    main()
