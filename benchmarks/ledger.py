"""What a commit costs with a million windows behind it, against an empty ledger, on every store.

    python benchmarks/ledger.py [--windows 1000000] [--commits 200]

A commit is what the engine does around a load: the intent is saved, the window settled and saved. Both ledgers take
turns in the same store, so that whatever else the machine does falls on both; the ratio of the medians is what counts.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.mariadb import MariadbServer
from tests.objects import S3Server
from tests.services import PostgresServer

from floodmark.model.ledger import Intent, PipelineState, begin, settle
from floodmark.model.position import Position
from floodmark.model.window import Window, fold
from floodmark.state.env import EnvStore
from floodmark.state.file import FileStore
from floodmark.state.form import to_form, to_text
from floodmark.state.objects import ObjectStore
from floodmark.state.sql import SqlStore

AT = datetime(2026, 1, 1, tzinfo=UTC)
CHUNK = 10_000


def a_ledger(pipeline: str, windows: int) -> PipelineState:
    """As settling one window after the other leaves it; folded by the chunk, since it is the same and quicker."""
    kept: tuple[Window, ...] = ()
    for first in range(0, windows, CHUNK):
        kept = fold(kept + tuple(a_window(n) for n in range(first, min(first + CHUNK, windows))))
    return PipelineState(pipeline=pipeline, windows=kept)


def a_window(number: int) -> Window:
    after = Position.before(number) if number else None
    until = Position.before(number + 1)
    batch = f"{number:016x}"
    return Window(after=after, until=until, state="committed", batch=batch, ordinal=number + 1, rows=100, at=AT)


def commit(store: Any, state: PipelineState) -> tuple[PipelineState, float]:
    """The state, and the seconds it took."""
    number = 0 if state.mark is None else int(str(state.mark).replace(",", ""))
    window = a_window(number)
    intent = Intent(
        batch=window.batch, ordinal=window.ordinal, after=window.after, until=window.until, mark=window.until
    )
    began = time.perf_counter()
    announced = store.save(begin(state, intent))
    saved = store.save(settle(announced, intent, version=number, table_id="t", rows=100, at=AT))
    return saved, time.perf_counter() - began


def compare(store: Any, full: PipelineState, commits: int) -> tuple[float, float]:
    """Medians: empty, full."""
    empty = PipelineState(pipeline="empty")
    full, _ = commit(store, full)
    spent: dict[str, list[float]] = {"empty": [], "full": []}
    gc.disable()
    for turn in range(commits):
        for which in ("empty", "full") if turn % 2 else ("full", "empty"):
            if which == "full":
                full, seconds = commit(store, full)
            else:
                done, seconds = commit(store, empty)
                empty = PipelineState(pipeline="empty", revision=done.revision)
            spent[which].append(seconds)
    gc.enable()
    return statistics.median(spent["empty"]), statistics.median(spent["full"])


@contextmanager
def stores() -> Iterator[dict[str, Callable[[], Any]]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = stack.enter_context(PostgresServer())
        mariadb = stack.enter_context(MariadbServer())
        s3 = stack.enter_context(S3Server())
        os.environ.update(s3.environment)
        yield {
            "file": lambda: FileStore(folder / "state.json"),
            "sqlite": lambda: SqlStore(folder / "state.db"),
            "postgresql": lambda: SqlStore(postgres.create_database()),
            "mysql": lambda: SqlStore(mariadb.create_database()),
            "s3": lambda: ObjectStore(f"{s3.create_bucket()}/state.json"),
            "env": lambda: EnvStore("FLOODMARK_STATE", {}),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--windows", type=int, default=1_000_000)
    parser.add_argument("--commits", type=int, default=200)
    asked = parser.parse_args()
    full = a_ledger("full", asked.windows)
    print(f"{asked.windows:,} windows folded to {len(full.windows)}, stored as {len(to_text(to_form(full))):,} bytes\n")
    print(f"{'store':12}{'empty':>10}{'full':>10}{'ratio':>8}")
    with stores() as opened:
        for name, opening in opened.items():
            with closing(opening()) as store:
                empty, behind = compare(store, full, asked.commits)
            print(f"{name:12}{empty * 1000:>7.2f} ms{behind * 1000:>7.2f} ms{behind / empty:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
