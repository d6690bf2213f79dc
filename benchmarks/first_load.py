"""Figures of the core: wall times of the quick commands, Spark jobs of a run, peak memory of first loads.

    python benchmarks/first_load.py [--rows 1000000 5000000]

Absolute times are this machine's; what should hold anywhere are the ratios in the last lines.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.shop import Shop
from tests.services import PostgresServer

OF_THE_LOG = ("Compute snapshot", "DeltaLog", "Filtering files", "state reconstruction")
FLOODMARK = str(Path(sys.executable).with_name("floodmark"))


@dataclass
class Memory:
    """Peak of a process and all that it started, sampled."""

    peak: int = 0
    done: threading.Event = field(default_factory=threading.Event)

    def watch(self, pid: int) -> None:
        while not self.done.wait(0.2):
            self.peak = max(self.peak, sum(_resident(p) for p in _family(pid)))


def _family(pid: int) -> Iterator[int]:
    yield pid
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:  # it has ended: that must not end the watch
        return
    for thread in threads:
        try:
            children = Path(f"/proc/{pid}/task/{thread}/children").read_text().split()
        except OSError:
            continue
        for child in children:
            yield from _family(int(child))


def _resident(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in fields if line.startswith("VmRSS")), 0) * 1024


@contextmanager
def watched(process: subprocess.Popen[str]) -> Iterator[Memory]:
    memory = Memory()
    thread = threading.Thread(target=memory.watch, args=(process.pid,))
    thread.start()
    try:
        yield memory
    finally:
        memory.done.set()
        thread.join()


def command(folder: Path, *words: str) -> tuple[float, int, str]:
    """Seconds, peak bytes, output."""
    began = time.perf_counter()
    process = subprocess.Popen([FLOODMARK, *words], cwd=folder, stdout=subprocess.PIPE, text=True)
    with watched(process) as memory:
        out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"floodmark {' '.join(words)} ended with {process.returncode}\n{out}")
    return time.perf_counter() - began, memory.peak, out


def jobs_of_a_run(shop: Shop) -> tuple[int, int]:
    """Spark jobs of one incremental run: ours, and Delta's own reads of its log."""
    events = shop.folder / "events"
    events.mkdir(exist_ok=True)
    logged = f"spark.eventLog.enabled: true, spark.eventLog.compress: false, spark.eventLog.dir: 'file://{events}'"
    shop.declare(f"spark: {{config: {{{logged}}}}}\n")
    shop.change(8000, 2000)
    command(shop.folder, "run", "orders")
    ours = theirs = 0
    for path in sorted(p for p in events.rglob("events_*") if p.is_file()):
        for line in path.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] != "SparkListenerJobStart":
                continue
            about = (event.get("Properties") or {}).get("spark.job.description") or ""
            stages = " ".join(stage["Stage Name"] for stage in event["Stage Infos"])
            log = any(
                word in about + stages
                for word in ("Delta: Compute snapshot", "DeltaLog", "Filtering files", "state reconstruction")
            )
            theirs, ours = theirs + log, ours + (not log)
            print(f"    job: {about[:100].splitlines()[0] if about else stages[:100]}")
    shop.declare()
    return ours, theirs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 5_000_000])
    peaks: dict[int, int] = {}
    with PostgresServer() as server, tempfile.TemporaryDirectory() as scratch:
        for rows in parser.parse_args().rows:
            shop = Shop(server, Path(scratch, str(rows)), rows)
            shop.declare()
            seconds, peaks[rows], _ = command(shop.folder, "run", "orders")
            print(
                f"{rows:,} rows  first load {seconds:.1f} s  {rows / seconds:,.0f} rows/s  peak {peaks[rows] >> 20} MiB"
            )
        for words in (["plan"], ["status"], ["run", "orders"]):
            times = sorted(command(shop.folder, *words)[0] for _ in range(3))
            print(f"floodmark {' '.join(words)}: {times[1]:.2f} s" + (" (nothing new)" if words[0] == "run" else ""))
        shop.change(8000, 2000)
        seconds, _, out = command(shop.folder, "run", "orders")
        print(f"10,000 changes, cold: {seconds:.1f} s\n{out}")
        ours, theirs = jobs_of_a_run(shop)
        print(f"Spark jobs of an incremental run: {ours}, and {theirs} of Delta's own log")
    low, high = min(peaks), max(peaks)
    print(f"peak memory, {high:,} rows against {low:,}: {peaks[high] / peaks[low]:.2f}x")


if __name__ == "__main__":
    main()
