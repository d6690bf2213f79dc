"""How soon the commands answer where there is nothing to do: CPU and wall seconds, beside an empty Python.

    python benchmarks/quiet.py [--rounds 5]

A small table is loaded once, from SQLite and from Postgres; then `plan`, `status` and a `run` that finds nothing new
are started again and again, each in a process of its own as a scheduler does it. They take turns, so that whatever
else the machine does falls on all of them. Ratios to `python -c pass` travel from machine to machine; seconds do not.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.lab import Lab
from tests.services import PostgresServer, run_cli

FLOODMARK = (sys.executable, "-m", "floodmark.cli.main")
COMMANDS = {"plan": ("plan",), "status": ("status",), "run, nothing new": ("run", "orders")}


@dataclass
class Spent:
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def add(self, command: Sequence[str], folder: Path) -> None:
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.wall.append(time.perf_counter() - start)
        self.cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


@contextmanager
def labs() -> Iterator[dict[str, Lab]]:
    """Loaded, with nothing new."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(PostgresServer())
        made = {
            "sqlite": Lab(folder / "sqlite", "sqlite"),
            "postgres": Lab(folder / "postgres", "postgres", server.create_database()),
        }
        for lab in made.values():
            lab.fill(100)
            lab.write()
            run_cli("run", "orders", cwd=lab.root)
        yield made


def measure(lab: Lab, rounds: int) -> dict[str, Spent]:
    commands: dict[str, Sequence[str]] = {"python -c pass": (sys.executable, "-c", "pass")}
    commands |= {name: (*FLOODMARK, *words) for name, words in COMMANDS.items()}
    spent = {name: Spent() for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            spent[name].add(command, lab.root)
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        print("! PYTHONDONTWRITEBYTECODE is set: what is not compiled yet is compiled at each start\n")
    print(f"{'':10}{'':18}{'CPU':>8}{'ratio':>8}{'wall':>10}{'ratio':>8}")
    with labs() as made:
        for kind, lab in made.items():
            spent = measure(lab, rounds)
            empty = spent["python -c pass"]
            for name, own in spent.items():
                cpu, wall = statistics.median(own.cpu), statistics.median(own.wall)
                ratios = cpu / statistics.median(empty.cpu), wall / statistics.median(empty.wall)
                print(f"{kind:10}{name:18}{cpu:>6.3f} s{ratios[0]:>8.1f}{wall:>8.3f} s{ratios[1]:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
