"""Whatever happens to a pipeline, in whatever order: what the ledger calls committed is what the target holds.

Runner, backfill, planner, ledger, look and fence are the real ones; source, target and store are made up, and a story
of writers, crashes, pauses, takeovers, backfills, resets and lost states is played on them. `FLOODMARK_STORIES` sets
how many stories each machine plays.
"""

from __future__ import annotations

import logging
import os
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.processes import Process
from tests.world import Keeper, Mode, World
from tests.writers import SECOND

from floodmark.errors import ConfigError, FloodmarkError, LeaseError, Refused, StateError, TargetError

STORIES = int(os.environ.get("FLOODMARK_STORIES", "20"))

KEEPERS: st.SearchStrategy[Keeper] = st.sampled_from(["leases", "no leases", "leases", "target"])
WHICH = st.integers(0, 9)
SHARES = st.integers(0, 20)
"""A place in the source, in eighteenths of all values: the last two lie beyond them."""
BATCH_ROWS = st.sampled_from([1, 2, 3, 5, 1000])
SLICES = st.none() | st.integers(1, 4)
STEPS = st.integers(0, 30)
WAITS = st.sampled_from([0, 1, 2, 5, 12, 20])
"""Half seconds before a run."""

OVERTAKEN = (StateError, LeaseError, TargetError)
"""What a runner may say when another one was quicker."""


@pytest.fixture(autouse=True)
def _retries_go_unsaid(caplog: pytest.LogCaptureFixture) -> None:
    """A story that fails is told again and again until it is short, with all its retries."""
    caplog.set_level(logging.ERROR, "stamina")


class Calm(RuleBasedStateMachine):
    """Writers, clocks and runs: what the look, the planner and the ledger make of them."""

    mode: ClassVar[Mode]
    timed: ClassVar[bool]

    @initialize(keeper=KEEPERS, lookback=st.sampled_from([None, 3, 8]))
    def begin(self, keeper: Keeper, lookback: int | None) -> None:
        self.world = World(self.mode, self.timed, keeper)
        self.world.lookback = self.lookback = self.scaled(lookback)
        self.shop = self.world.shop
        self.paused: list[Process] = []
        self.lookbacks: dict[Process, int | None] = {}
        self.kept: list[bytes | None] = []
        self.skipped: list[tuple[int, int]] = []
        self.ever_skipped: list[tuple[int, int]] = []
        self.furthest = 0
        """Of all marks: an older state, or target, may bring one back that lies above today's."""

    def scaled(self, steps: int | None) -> int | None:
        return None if steps is None else steps * SECOND if self.timed else steps

    def place(self, share: int) -> int:
        highest = self.shop.clock if self.timed else self.shop.drawn
        return highest * share // 18

    # -- writers --------------------------------------------------------------------------------------------------

    @rule(count=st.integers(1, 5), alike=st.booleans(), key=st.none() | WHICH)
    def write(self, count: int, alike: bool, key: int | None) -> None:
        value = self.shop.draw() if alike else None
        for number in range(count):
            self.shop.put(self.shop.version(self.key(None if key is None else key + number), value))

    @rule(which=st.none() | WHICH, key=st.none() | WHICH)
    def write_in_transaction(self, which: int | None, key: int | None) -> None:
        anew = not self.shop.open or (which is None and len(self.shop.open) < 3)
        writer = self.shop.begin() if anew else self.writer(which or 0)
        self.shop.open[writer].append(self.shop.version(self.key(key)))

    def key(self, which: int | None) -> int:
        """A new one, or where rows may change one that nobody has locked."""
        free = [row.key for row in self.shop.rows if row.key not in self.shop.locked]
        known = which is not None and free and self.mode == "upsert"
        return free[(which or 0) % len(free)] if known else self.shop.new_key()

    def writer(self, which: int) -> str:
        return sorted(self.shop.open)[which % len(self.shop.open)]

    @precondition(lambda self: self.shop.open)
    @rule(which=WHICH, commit=st.booleans())
    def end_writer(self, which: int, commit: bool) -> None:
        self.shop.end(self.writer(which), commit=commit)

    @rule(share=SHARES, moves=st.booleans(), which=WHICH)
    def come_late(self, share: int, moves: bool, which: int) -> None:
        """An application fills in a value late, or changes a row that an append has loaded: a lookback is for that."""
        newest = self.shop.clock if self.timed else self.shop.top + 1
        lookback = min((self.lookbacks[p] or 0 for p in self.paused), default=self.lookback or 0)
        floor = max(self.furthest, newest - min(lookback, self.lookback or 0))
        young = [row for row in self.shop.rows if row.value >= floor and row.key not in self.shop.locked]
        if moves and young and self.mode == "append":
            self.shop.put(self.shop.version(young[which % len(young)].key))
        elif floor < newest:
            self.shop.put(self.shop.version(self.shop.new_key(), floor + (newest - 1 - floor) * share // 20))

    # -- runners --------------------------------------------------------------------------------------------------

    @rule(wait=WAITS, batch_rows=BATCH_ROWS, max_slices=SLICES, blind=st.integers(0, 9))
    def run(self, wait: int, batch_rows: int, max_slices: int | None, blind: int) -> None:
        self.tick(wait)
        self.shop.blind = blind == 9
        done = self.finish(self.world.run(batch_rows, max_slices))
        self.shop.blind = False
        if done:
            self.world.check_heads()

    @rule(wait=WAITS, batch_rows=BATCH_ROWS)
    def grow_quiet(self, wait: int, batch_rows: int) -> None:
        """Without anything new, the second run loads nothing and leaves the ledger as it is."""
        self.tick(wait)
        if not self.finish(self.world.run(batch_rows)):
            return
        before, commits = self.world.agreed(), len(self.world.target.commits)
        process = self.world.run(batch_rows)
        assert self.finish(process)
        assert process.result.nothing_new
        assert len(self.world.target.commits) == commits
        assert self.world.agreed().windows == before.windows

    def tick(self, halves: int) -> None:
        self.shop.clock += halves * SECOND // 2

    @rule(back=st.sampled_from([None, 3, 8]))
    def change_lookback(self, back: int | None) -> None:
        self.world.lookback = self.lookback = self.scaled(back)

    def finish(self, process: Process, *others: type[FloodmarkError]) -> bool:
        """To its end, undisturbed: so it has to succeed."""
        may = others + ((StateError,) if self.world.troubles else ())
        process.go()
        return assert_fine(process, may)

    # -- what must hold -------------------------------------------------------------------------------------------

    @invariant()
    def committed_is_what_the_target_holds(self) -> None:
        mark = self.world.check(self.skipped, len(self.ever_skipped))
        self.furthest = max(self.furthest, mark or 0)

    def teardown(self) -> None:
        """All writers end, everything is loaded: then both are the same."""
        if not hasattr(self, "world"):
            return
        for number, writer in enumerate(sorted(self.shop.open)):
            self.shop.end(writer, commit=number != 1)
        for process in self.paused:
            process.go()
        self.world.troubles.clear()
        self.shop.clock += 10 * SECOND
        if self.skipped:
            self.finish(self.world.move(None))
        self.finish(self.world.run(3))
        self.finish(self.world.run(3))
        assert sorted(self.world.target.rows) == sorted(self.shop.rows)


class Storm(Calm):
    """And all that can come between: crashes, pauses, takeovers, resets, lost states."""

    @rule(batch_rows=BATCH_ROWS)
    def refresh(self, batch_rows: int) -> None:
        if self.finish(self.world.run(batch_rows, full=True)):
            self.skipped = []

    @precondition(lambda self: len(self.paused) < 3)
    @rule(
        what=st.sampled_from(["run", "run", "run", "backfill", "refresh", "move"]),
        steps=STEPS,
        batch_rows=BATCH_ROWS,
        share=SHARES,
    )
    def start(self, what: str, steps: int, batch_rows: int, share: int) -> None:
        """A runner that stops somewhere on its way."""
        place = self.place(share)
        if what == "run":
            process = self.world.run(batch_rows)
        elif what == "backfill":
            process = self.world.backfill(place, None, batch_rows)
        elif what == "refresh":
            process = self.world.run(batch_rows, full=True)
        else:
            # Back only: what a jump forward would skip is known when it is done.
            process = self.world.move(min(place, self.world.mark or 0))
        self.lookbacks[process] = self.lookback
        self.walk(process, steps)

    @precondition(lambda self: self.paused)
    @rule(which=WHICH, dies=st.booleans(), steps=STEPS | st.none())
    def wake(self, which: int, dies: bool, steps: int | None) -> None:
        process = self.paused.pop(which % len(self.paused))
        if dies:
            process.kill()
        else:
            self.walk(process, steps)

    def walk(self, process: Process, steps: int | None) -> None:
        if not process.go(steps):
            self.paused.append(process)
            return
        assert_fine(process, (*OVERTAKEN, Refused, ConfigError))

    @rule(first=SHARES, second=SHARES | st.none(), batch_rows=BATCH_ROWS)
    def backfill(self, first: int, second: int | None, batch_rows: int) -> None:
        until = None if second is None else self.place(second)
        self.finish(self.world.backfill(self.place(first), until, batch_rows), Refused, ConfigError)

    # -- what users do --------------------------------------------------------------------------------------------

    @precondition(lambda self: self.world.keeper != "target")
    @rule(share=SHARES | st.none())
    def move(self, share: int | None) -> None:
        before = self.world.mark
        to = None if share is None else self.place(share)
        self.finish(self.world.move(to))
        after = -1 if to is None else to
        if self.world.mark != to:
            return
        if (before or 0) < after:
            for skipped in (self.skipped, self.ever_skipped):
                skipped.append((before or 0, after))
        elif not self.paused:
            # What lies above is read again, and no older load can still land and undo this.
            self.skipped = [(low, min(high, after)) for low, high in self.skipped if low < after]

    @precondition(lambda self: self.world.keeper != "target")
    @rule(what=st.sampled_from(["lose", "back up", "restore"]), which=WHICH)
    def treat_state(self, what: str, which: int) -> None:
        memory = self.world.memory
        if what == "back up":
            self.kept.append(memory.content)
            return
        memory.content = self.kept[which % len(self.kept)] if what == "restore" and self.kept else None
        self.skipped = list(self.ever_skipped)

    @precondition(lambda self: not self.paused and self.world.target.commits)
    @rule(count=st.integers(1, 4))
    def take_target_back(self, count: int) -> None:
        """Not under a runner: what that loads then lands on a table that it has never seen."""
        self.world.target.take_back(min(count, len(self.world.target.commits) - 1))
        self.skipped = list(self.ever_skipped)

    @precondition(lambda self: self.mode == "upsert")
    @rule()
    def fail_over(self) -> None:
        """Another server: the next run reads again from further back, by itself."""
        self.shop.server += "'"

    @rule(when=st.sampled_from(["before", "after"]), where=st.sampled_from(["target", "store"]))
    def disturb(self, when: str, where: str) -> None:
        if where == "target":
            self.world.target.trouble = when
        elif not self.world.troubles:
            self.world.troubles.append(when)


def assert_fine(process: Process, may: tuple[type[FloodmarkError], ...]) -> bool:
    """False after a failure that may be."""
    if process.failure is not None and not isinstance(process.failure, may):
        raise AssertionError("a runner that nobody was in the way of has failed") from process.failure
    return process.failure is None


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
STORY = settings(max_examples=STORIES, stateful_step_count=40, deadline=None, suppress_health_check=SLOW)


def played(weather: type[Calm], mode: Mode, timed: bool) -> Any:
    machine: Any = type(f"{weather.__name__}{mode.title()}", (weather,), {"mode": mode, "timed": timed})
    machine.TestCase.settings = STORY
    return machine.TestCase


TestCalmAppendByNumber = played(Calm, "append", timed=False)
TestCalmAppendByTime = played(Calm, "append", timed=True)
TestCalmUpsertByNumber = played(Calm, "upsert", timed=False)
TestCalmUpsertByTime = played(Calm, "upsert", timed=True)
TestStormAppendByNumber = played(Storm, "append", timed=False)
TestStormAppendByTime = played(Storm, "append", timed=True)
TestStormUpsertByNumber = played(Storm, "upsert", timed=False)
TestStormUpsertByTime = played(Storm, "upsert", timed=True)
