"""Who gets the lease: with a clock of our own for what takes time, with real processes for who is alive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from floodmark.errors import LeaseHeld, LeaseLost, StateError
from floodmark.lease import LeaseKeeper, NoLease, keep_lease, standing, this_process
from floodmark.model.lease import Lease, Owner
from floodmark.model.outcome import TargetState
from floodmark.state.file import FileStore
from floodmark.state.sql import SqlStore
from floodmark.state.target import TargetStore
from floodmark.testing.store_suite import a_state

NOW = datetime.now(UTC)
TTL = timedelta(seconds=30)
QUICK = timedelta(milliseconds=60)
ELSEWHERE = Owner(host="db-7", pid=4211, run="r0", since=NOW, boot="another", started="9")


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "state.json")


class Clock:
    """Time passes only in `sleep`; `during` happens in each."""

    def __init__(self, during: Callable[[int], object] = lambda _: None, stride: float = 1.0) -> None:
        self.now = 1000.0
        self.sleeps = 0
        self._during = during
        self._stride = stride

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps += 1
        self.now += seconds * self._stride
        self._during(self.sleeps)

    def keeper(self, store: FileStore | SqlStore, ttl: timedelta = TTL) -> LeaseKeeper:
        me = this_process("r1", NOW)
        return LeaseKeeper(store, "t", me, ttl=ttl, monotonic=self.monotonic, sleep=self.sleep)


def wait_for(condition: Callable[[], object]) -> None:
    """For what another thread or process does; the time-out is pytest's."""
    never = threading.Event()
    while not condition():
        never.wait(0.005)


class TestAFreeLease:
    def test_is_taken_for_the_block_and_released(self, store: FileStore) -> None:
        clock = Clock()
        with clock.keeper(store) as keeper:
            assert keeper.current is not None
            assert (keeper.current.epoch, store.holder("t")) == (1, keeper.current)
            keeper.check()
            assert store.save(a_state(), lease=keeper.current).revision == 1
            assert "lease t" in [thread.name for thread in threading.enumerate()]
        assert (store.holder("t"), clock.sleeps) == (None, 0)
        assert "lease t" not in [thread.name for thread in threading.enumerate()]
        with clock.keeper(store) as keeper:
            assert keeper.current is not None
            assert keeper.current.epoch == 2

    def test_is_released_when_the_block_fails(self, store: FileStore) -> None:
        with pytest.raises(ValueError, match="boom"), Clock().keeper(store):
            raise ValueError("boom")
        assert store.holder("t") is None


class TestAHolderThatCanNotBeSeen:
    def test_standing_still_for_a_whole_ttl_it_is_taken_over(self, store: FileStore) -> None:
        stale = store.acquire("t", ELSEWHERE)
        clock = Clock()
        with clock.keeper(store) as keeper:
            assert keeper.current is not None
            assert keeper.current.epoch == stale.epoch + 1
        assert clock.now - 1000 >= TTL.total_seconds()
        with pytest.raises(LeaseLost):
            store.save(a_state(), lease=stale)

    @pytest.mark.parametrize("beats_at", [1, 4, 6])
    def test_a_beat_within_the_ttl_keeps_us_out(self, store: FileStore, beats_at: int) -> None:
        lease = store.acquire("t", ELSEWHERE)
        clock = Clock(lambda n: store.beat(lease) if n == beats_at else None)
        since = f"{NOW.astimezone():%H:%M:%S}"
        with (
            pytest.raises(LeaseHeld, match=f"^running already: host db-7, pid 4211, since {since}$"),
            clock.keeper(store),
        ):
            raise AssertionError("not ours")
        holder = store.holder("t")
        assert holder is not None
        assert (holder.owner, holder.epoch, clock.sleeps) == (ELSEWHERE, 1, beats_at)

    def test_released_while_we_watch_it_is_ours_at_once(self, store: FileStore) -> None:
        lease = store.acquire("t", ELSEWHERE)
        clock = Clock(lambda n: store.release(lease) if n == 2 else None)
        with clock.keeper(store) as keeper:
            assert keeper.current is not None
        assert clock.sleeps == 2

    def test_another_that_takes_over_first_keeps_us_out(self, store: FileStore) -> None:
        lease = store.acquire("t", ELSEWHERE)
        clock = Clock(lambda n: store.acquire("t", ELSEWHERE, expected=lease) if n == 3 else None)
        with pytest.raises(LeaseHeld), clock.keeper(store):
            raise AssertionError("not ours")

    def test_a_pause_of_our_own_does_not_count_as_watching(self, store: FileStore) -> None:
        # One sleep that took an hour: the machine was paused, and the holder with it.
        store.acquire("t", ELSEWHERE)
        clock = Clock(stride=3600.0)
        with clock.keeper(store):
            assert clock.sleeps >= 3

    def test_the_day_is_shown_when_it_is_not_today(self, store: FileStore) -> None:
        old = ELSEWHERE.but(since=NOW - timedelta(days=3))
        lease = store.acquire("t", old)
        clock = Clock(lambda _: store.beat(lease))
        with pytest.raises(LeaseHeld, match=f"since {old.since.astimezone():%Y-%m-%d %H:%M:%S}"), clock.keeper(store):
            raise AssertionError("not ours")


class TestAHolderOnThisHost:
    def test_that_is_there_keeps_us_out_by_its_beats_alone(self, store: FileStore) -> None:
        lease = store.acquire("t", this_process("r0", NOW))
        clock = Clock(lambda _: store.beat(lease))
        with pytest.raises(LeaseHeld, match=f"pid {os.getpid()}"), clock.keeper(store):
            raise AssertionError("not ours")
        assert clock.sleeps == 1

    @pytest.mark.parametrize("reaped", [True, False], ids=["gone", "zombie"])
    @pytest.mark.parametrize("kind", [FileStore, SqlStore])
    def test_that_was_killed_is_taken_over_without_waiting(
        self, tmp_path: Path, kind: type[FileStore | SqlStore], reaped: bool
    ) -> None:
        store = kind(tmp_path / "state")
        with a_holder(kind, tmp_path / "state") as process:
            process.send_signal(signal.SIGKILL)
            # WNOWAIT leaves it unreaped, as under a container's init that does not reap.
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            if reaped:
                process.wait()
            clock = Clock()
            with clock.keeper(store) as keeper:
                assert keeper.current is not None
                assert keeper.current.epoch == 2
            assert clock.sleeps == 0
        store.close()

    def test_that_is_paused_is_taken_over_after_the_ttl(self, store: FileStore, tmp_path: Path) -> None:
        """It is there, and may go on one day; but it does not beat, and its commits are fenced."""
        with a_holder(FileStore, tmp_path / "state.json") as process:
            process.send_signal(signal.SIGSTOP)
            clock = Clock()
            with clock.keeper(store) as keeper:
                assert keeper.current is not None
                assert keeper.current.epoch == 2
            assert clock.now - 1000 >= TTL.total_seconds()

    def test_a_recycled_pid_is_not_the_holder(self) -> None:
        me = this_process("r1", NOW)
        assert standing(me, me) == "there"
        assert standing(me.but(started="1"), me) == "gone"

    @pytest.mark.parametrize("change", [{"host": "b"}, {"boot": "b"}, {"boot": ""}, {"started": ""}])
    def test_nothing_is_said_of_other_hosts_boots_and_containers(self, change: dict[str, str]) -> None:
        me = this_process("r1", NOW)
        assert standing(me.but(**change), me) == "unknown"
        bare = me.but(boot="")
        assert standing(bare, bare) == "unknown"

    def test_another_users_process_counts_as_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def not_permitted(pid: int, number: int) -> None:
            raise PermissionError

        monkeypatch.setattr(os, "kill", not_permitted)
        me = this_process("r1", NOW)
        assert standing(me, me) == "there"
        # Hidden in /proc as well (hidepid): then only its beat can tell.
        assert standing(me.but(pid=2**22 + 1), me) == "unknown"


class Moody(FileStore):
    """A store that fails when told to."""

    beats = 0
    mood: Exception | None = None

    def beat(self, lease: Lease) -> Lease:
        self.beats += 1
        if self.mood is not None:
            raise self.mood
        return super().beat(lease)

    def release(self, lease: Lease) -> None:
        if self.mood is not None:
            raise self.mood
        super().release(lease)


class TestTheHeart:
    def test_it_beats(self, store: FileStore) -> None:
        with Clock().keeper(store, QUICK) as keeper:
            first = keeper.current
            assert first is not None
            wait_for(lambda: (store.holder("t") or first).beat >= first.beat + 3)
            keeper.check()
            assert store.save(a_state(), lease=keeper.current).revision == 1

    def test_a_takeover_is_noticed_and_the_new_holder_left_alone(self, store: FileStore) -> None:
        with Clock().keeper(store, QUICK) as keeper:

            def takes_over() -> bool:
                # The heart beats all the while, so the lease that was seen may be old already.
                with suppress(LeaseHeld):
                    store.acquire("t", ELSEWHERE, expected=store.holder("t"))
                    return True
                return False

            wait_for(takes_over)
            with pytest.raises(LeaseLost, match="taken over by host db-7, pid 4211"):
                wait_for(keeper.check)
            with pytest.raises(LeaseLost):
                store.save(a_state(), lease=keeper.current)
        holder = store.holder("t")
        assert holder is not None
        assert holder.owner == ELSEWHERE

    def test_a_store_that_is_away_for_a_while_is_remembered_and_not_fatal(self, tmp_path: Path) -> None:
        store = Moody(tmp_path / "state.json")
        with Clock().keeper(store, QUICK) as keeper:
            store.mood = StateError("disk on fire")
            failed_at = store.beats
            wait_for(lambda: store.beats >= failed_at + 3)
            keeper.check()
            assert keeper.trouble is store.mood
            store.mood = None
            lease = keeper.current
            assert lease is not None
            wait_for(lambda: (store.holder("t") or lease).beat > lease.beat)
        assert store.holder("t") is None

    def test_a_failed_release_does_not_shut_this_process_out(self, tmp_path: Path) -> None:
        store = Moody(tmp_path / "state.json")
        # A run of its own: what is remembered of it outlives this test.
        with LeaseKeeper(store, "t", this_process("left behind", NOW)) as keeper:
            store.mood = StateError("disk on fire")
        assert keeper.trouble is store.mood
        store.mood = None
        assert store.holder("t") is not None
        clock = Clock()
        with clock.keeper(store):
            assert clock.sleeps == 0


def test_only_a_store_with_leases_gets_a_real_keeper(store: FileStore) -> None:
    assert isinstance(keep_lease(store, "t", ELSEWHERE), LeaseKeeper)
    with keep_lease(TargetStore(lambda _: TargetState(exists=False)), "t", ELSEWHERE) as keeper:
        keeper.check()
        assert isinstance(keeper, NoLease)
        assert (keeper.current, keeper.trouble) == (None, None)


HOLDER = """
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from floodmark.lease import LeaseKeeper, this_process
module, name, path = sys.argv[1:]
store = getattr(import_module(module), name)(Path(path))
with LeaseKeeper(store, "t", this_process("held", datetime.now(UTC))):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def a_holder(kind: type, path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lease."""
    command = [sys.executable, "-c", HOLDER, kind.__module__, kind.__name__, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()
