"""Peak memory of first loads: whether it follows the table, for each target.

    python benchmarks/memory.py [--rows 5000000] [--base 1000000] [--targets delta iceberg parquet postgres ...]

Each load is a `floodmark run` of its own, from Postgres, of a small and of a large table. What counts is the resident
memory of all its processes together: Python, Java, and the workers that Java starts; not that of the servers. Pages
that processes share are counted for each. The ratio is what should hold anywhere.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.first_load import command
from benchmarks.growth import show
from benchmarks.orders import Orders
from tests.mariadb import MariadbServer
from tests.services import PostgresServer

Told = dict[str, Any]
FILES = {
    "delta": "{type: delta, path: lake}",
    "iceberg": "{type: iceberg, path: lake}",
    "parquet": "{type: parquet, path: files}",
    "sqlite": "{type: sqlite, path: copies.db}",
    "duckdb": "{type: duckdb, path: copies.duckdb}",
}
SERVERS: dict[str, type[PostgresServer] | type[MariadbServer]] = {"postgres": PostgresServer, "mariadb": MariadbServer}
TARGETS = (*FILES, *SERVERS)
SIZES = (1_000_000, 5_000_000)

# A Spark that stays, or a process that archives its classes, would be counted here and missed there.
PROJECT = """\
connections:
  shop: {{type: postgres, url: "{url}"}}
  copies: {connection}
spark: {{resident: off, archive: off}}
pipelines:
  orders:
    source: {{connection: shop, table: public.orders}}
    change: {{by: timestamp, column: updated_at, delay: 0s}}
    target: {{connection: copies, table: orders, mode: upsert, keys: [order_id]}}
"""


@dataclass
class Ground:
    """Servers that are started when the first load asks for them."""

    stack: ExitStack
    scratch: Path
    _servers: dict[str, Any] = field(default_factory=dict)
    _orders: dict[int, Orders] = field(default_factory=dict)

    def server(self, kind: str) -> Any:
        if kind not in self._servers:
            self._servers[kind] = self.stack.enter_context(SERVERS[kind]())
        return self._servers[kind]

    def orders(self, rows: int) -> Orders:
        if rows not in self._orders:
            self._orders[rows] = Orders(self.server("postgres"), rows)
        return self._orders[rows]

    @contextmanager
    def project(self, target: str, rows: int) -> Iterator[Path]:
        """Its folder; what was loaded is removed with it."""
        folder = self.scratch / f"{target}-{rows}"
        folder.mkdir()
        url = self.server(target).create_database() if target in SERVERS else ""
        connection = f'{{type: {target}, url: "{url}"}}' if url else FILES[target]
        told = PROJECT.format(url=self.orders(rows).url, connection=connection)
        (folder / "floodmark.yml").write_text(told)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)
            if url:
                self.server(target).drop_database(url)


def load(ground: Ground, target: str, rows: int) -> Told:
    with ground.project(target, rows) as folder:
        seconds, peak, out = command(folder, "run", "orders", "--until-complete", "--json")
    loaded = _loaded(out)
    if loaded != rows:
        raise SystemExit(f"{target} holds {loaded:,} of {rows:,} rows\n{out}")
    return {"target": target, "rows": rows, "peak": peak, "seconds": seconds}


def _loaded(out: str) -> int:
    return sum(run["rows"]["inserted"] for run in json.loads(out))


def measure(targets: Sequence[str], sizes: Sequence[int], done: Sequence[Told], keep: Callable[[Told], None]) -> None:
    """What is not among `done` yet; each figure goes to `keep` at once."""
    known = {(d["target"], d["rows"]) for d in done}
    missing = [(target, rows) for target in targets for rows in sizes if (target, rows) not in known]
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="floodmark-memory-")))
        ground = Ground(stack, scratch)
        for target, rows in missing:
            keep(load(ground, target, rows))


def table(done: Sequence[Told]) -> list[tuple[str, ...]]:
    """Heads, then a row for each target and size: peaks, and ratios to the smallest size."""
    lines: list[tuple[str, ...]] = [("target", "rows", "first load", "peak memory", "to the smallest")]
    for target in dict.fromkeys(d["target"] for d in done):
        mine = sorted((d for d in done if d["target"] == target), key=lambda d: d["rows"])
        for d in mine:
            shown = (f"{d['seconds']:.0f} s", f"{d['peak'] >> 20:,} MiB", f"{d['peak'] / mine[0]['peak']:.2f}x")
            lines.append((target, f"{d['rows']:,}", *shown))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=SIZES[1])
    parser.add_argument("--base", type=int, default=SIZES[0], help="the smaller table that it is compared with")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS))
    asked = parser.parse_args()
    done: list[Told] = []

    def keep(told: Told) -> None:
        done.append(told)
        print(f"  {told['target']} {told['rows']:,} rows: {told['peak'] >> 20:,} MiB", flush=True)

    measure(asked.targets, sorted({asked.base, asked.rows}), done, keep)
    show(table(done))


if __name__ == "__main__":
    main()
