"""What every state store must do. Inherit the classes that fit the store, and override `reopen`:

    class TestMyStore(StateContract, DurableContract, LeaseContract, HistoryContract):
        @pytest.fixture
        def reopen(self, tmp_path):
            return partial(MyStore, tmp_path / "state")

Each call of `reopen` opens another handle on the same store; it is pickled, for the tests with several processes.
A capability that the store lacks is a class that it does not inherit, so nothing is ever skipped.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from floodmark.errors import LeaseHeld, LeaseLost, StateConflict, StateError
from floodmark.model.lease import Lease, Owner
from floodmark.model.ledger import FORMAT, Ahead, HeadRef, Intent, PendingLook, PipelineState
from floodmark.model.outcome import RunRecord
from floodmark.model.position import Position
from floodmark.model.window import Window
from floodmark.stores import export_state, import_state

Reopen = Callable[[], Any]

NOON = datetime(2026, 11, 15, 12, 0, 0, 123456, tzinfo=timezone(timedelta(hours=2)))

POSITIONS = {
    "timestamp": Position.before(NOON),
    "integer beyond 64 bits": Position.before(2**63 + 11),
    "negative": Position.before(-5),
    "text": Position.before("straße \U0001f30a 'quoted' \\ \x00"),
    "beyond text": Position.after("zz"),
    "composite": Position.before(NOON, 7),
    "composite beyond": Position.after(NOON, "k"),
}

NAMES = ["two words", "it's", 'say "so"', "a.b.c", "größe", "数据", "a/b", "../up", "%s;--", "A", "a", " a", "a "]

PROCESSES, ROUNDS = 4, 15


def a_state(pipeline: str = "orders", position: Position | None = None, **fields: Any) -> PipelineState:
    """With every field set to something that must survive."""
    at = position or Position.before(7)
    window = Window(after=None, until=at, state="committed", batch="b1", ordinal=1, rows=3, at=NOON)
    filled: dict[str, Any] = {
        "windows": (window,),
        "intent": Intent(batch="b2", ordinal=2, after=at, until=None, mark=at, ahead=Ahead(count=1, checksum="c")),
        "look": PendingLook(bound=at, taken_at=NOON, writers=("3/41", "4/7"), server="pg:1"),
        "ahead": Ahead(count=2, checksum="ff"),
        "head": HeadRef(ordinal=1, batch="b1", version=0, table_id="t"),
        "reached": at,
        "identity": {"keys": ["order_id"], "by": "timestamp"},
        "run_count": 3,
        "last_run_id": "r3",
        "last_run_at": NOON,
        "rows_total": 2**40,
        "metadata": {"owner": "Zoë", "nested": {"list": [1, 2.5, None, True]}},
    }
    return PipelineState(pipeline=pipeline, **{**filled, **fields})


def an_owner(run: str = "r1", pid: int = 4211) -> Owner:
    return Owner(host="db-7", pid=pid, run=run, since=NOON, boot="boot", started="99")


def a_run(number: int, pipeline: str = "orders") -> RunRecord:
    at = NOON + timedelta(minutes=number)
    mark = Position.before(at)
    return RunRecord(run_id=f"r{number}", pipeline=pipeline, started_at=at, seconds=1.5, success=True, mark=mark)


class StoreContract:
    """What the contracts below share. `other` is a second handle on the same store."""

    @pytest.fixture
    def reopen(self) -> Reopen:
        raise NotImplementedError("override `reopen`: it opens another handle on the same store")

    @pytest.fixture
    def store(self, reopen: Reopen) -> Iterator[Any]:
        with closing(reopen()) as store:
            yield store

    @pytest.fixture
    def other(self, reopen: Reopen) -> Iterator[Any]:
        with closing(reopen()) as other:
            yield other


class StateContract(StoreContract):
    """For every store."""

    def test_an_unknown_pipeline_has_no_state(self, store: Any) -> None:
        assert store.get("nobody") is None
        assert store.list_pipelines() == []

    @pytest.mark.parametrize("position", POSITIONS.values(), ids=POSITIONS)
    def test_everything_saved_comes_back(self, store: Any, position: Position) -> None:
        saved = store.save(a_state(position=position))
        assert saved == a_state(position=position).but(revision=1)
        assert store.get("orders") == saved
        assert store.get("orders").mark == position

    def test_each_save_raises_the_revision(self, store: Any) -> None:
        state = store.save(store.save(store.save(a_state())))
        assert (state.revision, store.get("orders").revision) == (3, 3)

    def test_a_stale_save_is_refused_and_changes_nothing(self, store: Any) -> None:
        first = store.save(a_state())
        second = store.save(first.but(run_count=4))
        with pytest.raises(StateConflict):
            store.save(first.but(run_count=99))
        assert store.get("orders") == second

    def test_a_first_save_is_refused_when_there_is_a_state(self, store: Any) -> None:
        saved = store.save(a_state())
        with pytest.raises(StateConflict):
            store.save(a_state(run_count=99))
        assert store.get("orders") == saved

    def test_a_save_over_nothing_is_refused(self, store: Any) -> None:
        with pytest.raises(StateConflict):
            store.save(a_state(revision=3))
        assert store.get("orders") is None

    def test_names_may_hold_anything(self, store: Any) -> None:
        for number, name in enumerate(NAMES):
            store.save(a_state(name, run_count=number))
        assert [store.get(name).run_count for name in NAMES] == list(range(len(NAMES)))
        assert store.list_pipelines() == sorted(NAMES)


class DurableContract(StoreContract):
    """For stores that keep what they are given."""

    def test_state_outlives_its_handle(self, reopen: Reopen) -> None:
        first = reopen()
        saved = first.save(a_state())
        first.close()
        with closing(reopen()) as again:
            assert again.get("orders") == saved

    def test_metadata_without_a_json_form_is_refused(self, store: Any) -> None:
        with pytest.raises(StateError):
            store.save(a_state(metadata={"bad": object()}))
        assert store.get("orders") is None

    def test_two_handles_see_one_store(self, store: Any, other: Any) -> None:
        seen = store.save(a_state())
        moved = other.save(other.get("orders").but(run_count=8))
        with pytest.raises(StateConflict):
            store.save(seen.but(run_count=9))
        assert store.get("orders") == moved

    def test_delete_says_whether_it_was_there(self, store: Any) -> None:
        store.save(a_state())
        store.save(a_state("kept"))
        assert store.delete("orders") is True
        assert store.delete("orders") is False
        assert store.get("orders") is None
        assert store.list_pipelines() == ["kept"]
        assert store.save(a_state()).revision == 1

    def test_no_update_is_lost_between_processes(self, reopen: Reopen, store: Any) -> None:
        # Spawned: a store's threads and connections need not survive a fork. All open it for the first time, at once.
        context = multiprocessing.get_context("spawn")
        workers = [context.Process(target=count_up, args=(reopen, ROUNDS)) for _ in range(PROCESSES)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(timeout=120)
        assert [worker.exitcode for worker in workers] == [0] * PROCESSES
        state = store.get("counter")
        assert (state.metadata["count"], state.revision) == (PROCESSES * ROUNDS, PROCESSES * ROUNDS)

    def test_export_and_import(self, store: Any) -> None:
        for name in ("a", "b"):
            store.save(store.save(a_state(name)))
        exported = export_state(store)
        assert exported["format"] == FORMAT
        for name in ("a", "b"):
            store.delete(name)
        assert import_state(store, exported) == ["a", "b"]
        assert [store.get(name) for name in ("a", "b")] == [a_state(name).but(revision=1) for name in ("a", "b")]

    def test_import_refuses_what_is_there(self, store: Any) -> None:
        exported = export_state_of(a_state("new"), a_state("old"))
        kept = store.save(a_state("old", run_count=50))
        with pytest.raises(StateError, match="old"):
            import_state(store, exported)
        assert (store.list_pipelines(), store.get("old")) == (["old"], kept)
        import_state(store, exported, overwrite=True)
        assert store.get("old").run_count == a_state().run_count

    def test_import_refuses_a_newer_format(self, store: Any) -> None:
        with pytest.raises(StateError, match="newer"):
            import_state(store, {**export_state_of(a_state()), "format": FORMAT + 1})
        assert store.list_pipelines() == []


class LeaseContract(StoreContract):
    """For stores with `SupportsLeases`."""

    def test_one_holder_at_a_time(self, store: Any, other: Any) -> None:
        assert store.holder("t") is None
        lease = store.acquire("t", an_owner())
        assert (lease.epoch, lease.released) == (1, False)
        assert other.holder("t") == lease
        with pytest.raises(LeaseHeld, match="host db-7, pid 4211"):
            other.acquire("t", an_owner("r2"))
        assert other.acquire("another table", an_owner("r2")).epoch == 1

    def test_a_released_lease_is_free_and_the_epoch_rises(self, store: Any, other: Any) -> None:
        lease = store.acquire("t", an_owner())
        store.release(lease)
        assert other.holder("t") is None
        assert other.acquire("t", an_owner("r2")).epoch == 2

    def test_release_has_no_effect_when_it_is_not_ours(self, store: Any, other: Any) -> None:
        old = store.acquire("t", an_owner())
        store.release(old)
        store.release(old)
        new = other.acquire("t", an_owner("r2"))
        store.release(old)
        assert other.holder("t") == new

    def test_a_beat_moves_the_counter(self, store: Any, other: Any) -> None:
        lease = store.acquire("t", an_owner())
        beaten = store.beat(store.beat(lease))
        assert (beaten.beat, beaten.epoch) == (lease.beat + 2, lease.epoch)
        assert other.holder("t") == beaten
        # The counter is the store's: a handle with an old copy of the lease goes on from it.
        assert store.beat(lease).beat == beaten.beat + 1

    def test_takeover_of_exactly_the_lease_that_was_seen(self, store: Any, other: Any) -> None:
        seen = store.acquire("t", an_owner())
        store.beat(seen)
        with pytest.raises(LeaseHeld):
            other.acquire("t", an_owner("r2"), expected=seen)
        stale = other.holder("t")
        assert other.acquire("t", an_owner("r2"), expected=stale).epoch == 2
        with pytest.raises(LeaseHeld):
            store.acquire("t", an_owner("r3"), expected=stale)

    def test_after_a_takeover_the_old_holder_can_do_nothing(self, store: Any, other: Any) -> None:
        old = store.acquire("t", an_owner())
        saved = store.save(a_state(), lease=old)
        new = other.acquire("t", an_owner("r2"), expected=old)
        with pytest.raises(LeaseLost):
            store.beat(old)
        with pytest.raises(LeaseLost):
            store.save(saved.but(run_count=99), lease=old)
        store.release(old)
        assert other.holder("t") == new
        assert other.get("orders") == saved
        assert other.save(saved, lease=new).revision == saved.revision + 1

    def test_a_released_or_unknown_lease_fences_too(self, store: Any) -> None:
        lease = store.acquire("t", an_owner())
        store.release(lease)
        for stale in (lease, Lease(resource="never taken", owner=an_owner(), epoch=1)):
            with pytest.raises(LeaseLost):
                store.save(a_state(), lease=stale)
            with pytest.raises(LeaseLost):
                store.beat(stale)
        assert store.get("orders") is None


class HistoryContract(StoreContract):
    """For stores with `SupportsHistory`."""

    def test_runs_come_newest_first(self, store: Any, other: Any) -> None:
        records = [a_run(number) for number in range(5)]
        for record in records:
            store.record_run(record)
        store.record_run(a_run(9, "another"))
        assert other.runs("orders") == records[::-1]
        assert other.runs("orders", limit=2) == records[:-3:-1]
        assert other.runs("nobody") == []


def export_state_of(*states: PipelineState) -> dict[str, Any]:
    return {"format": FORMAT, "pipelines": {state.pipeline: state.to_dict() for state in states}}


def count_up(reopen: Reopen, rounds: int) -> None:
    """One of several processes: read, add one, save; again when somebody was quicker."""
    with closing(reopen()) as store:
        while rounds:
            state = store.get("counter") or PipelineState(pipeline="counter")
            with suppress(StateConflict):
                store.save(state.but(metadata={"count": state.metadata.get("count", 0) + 1}))
                rounds -= 1
