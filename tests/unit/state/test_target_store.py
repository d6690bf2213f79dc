"""State that lives in the target: derived from its heads, the rest kept for this process."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from floodmark.errors import StateConflict, StateError
from floodmark.model.lease import Lease
from floodmark.model.ledger import Ahead, Intent, PipelineState, begin, reset, settle
from floodmark.model.outcome import Head, Landed, Rows, TargetState
from floodmark.model.position import Position
from floodmark.ports import SupportsHistory, SupportsLeases
from floodmark.state.target import TargetStore
from floodmark.testing.store_suite import an_owner

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


class FakeTarget:
    """The commits of one table per pipeline, newest first."""

    def __init__(self) -> None:
        self.landed: dict[str, tuple[Landed, ...]] = {}

    def inspect(self, pipeline: str) -> TargetState:
        landed = self.landed.get(pipeline, ())
        return TargetState(exists=bool(landed), landed=landed)

    def load(self, state: PipelineState, intent: Intent) -> None:
        head = Head(
            pipeline=state.pipeline,
            lane="main",
            ordinal=intent.ordinal,
            batch=intent.batch,
            start=state.start,
            after=intent.after,
            until=intent.until,
            mark=intent.mark,
            epoch=0,
            run=intent.run,
            at=NOW,
        )
        landed = Landed(head, intent.ordinal, "t", Rows(inserted=1))
        self.landed[state.pipeline] = (landed, *self.landed.get(state.pipeline, ()))


def planned(state: PipelineState, until: int, batch: str = "") -> PipelineState:
    ordinal = (state.head.ordinal if state.head else 0) + 1
    intent = Intent(
        batch=batch or f"b{ordinal}",
        ordinal=ordinal,
        after=state.mark,
        until=Position.before(until),
        mark=Position.before(until),
        run=f"r{ordinal}",
        ahead=Ahead(count=1, checksum="c"),
    )
    return begin(state, intent)


def run(store: TargetStore, target: FakeTarget, until: int, batch: str = "") -> PipelineState:
    """What a runner does: intent, load, settle."""
    state = store.save(planned(store.get("orders") or PipelineState(pipeline="orders"), until, batch))
    assert state.intent is not None
    target.load(state, state.intent)
    settled = settle(state, state.intent, version=state.intent.ordinal, table_id="t", rows=1, at=NOW)
    return store.save(settled)


@pytest.fixture
def target() -> FakeTarget:
    return FakeTarget()


@pytest.fixture
def store(target: FakeTarget) -> TargetStore:
    return TargetStore(target.inspect, ["orders", "idle"])


def test_another_process_finds_the_mark_in_the_target(store: TargetStore, target: FakeTarget) -> None:
    run(store, target, 5)
    mine = run(store, target, 9)
    theirs = TargetStore(target.inspect, ["orders", "idle"])
    found = theirs.get("orders")
    assert found is not None
    assert (found.mark, found.head, found.windows) == (mine.mark, mine.head, mine.windows)
    assert theirs.list_pipelines() == ["orders"]
    run(theirs, target, 12)
    assert found.mark == Position.before(9)


def test_what_the_heads_do_not_tell_lasts_as_long_as_the_process(store: TargetStore, target: FakeTarget) -> None:
    state = run(store, target, 5)
    kept = store.save(planned(state, 9).but(metadata={"note": "x"}, run_count=7))
    assert store.get("orders") == kept
    found = TargetStore(target.inspect).get("orders")
    assert found is not None
    assert (found.intent, found.metadata, found.mark) == (None, {}, Position.before(5))


def test_a_runner_that_was_overtaken_is_refused(store: TargetStore, target: FakeTarget) -> None:
    state = run(store, target, 5)
    other = TargetStore(target.inspect)
    run(other, target, 9)
    with pytest.raises(StateConflict, match="newer commit"):
        store.save(planned(state, 8))
    adopted = store.get("orders")
    assert adopted is not None
    assert adopted.mark == Position.before(9)
    assert run(store, target, 12).mark == Position.before(12)


def test_the_same_ordinal_by_somebody_else_is_a_conflict_too(store: TargetStore, target: FakeTarget) -> None:
    begun = store.save(planned(PipelineState(pipeline="orders"), 5, "mine"))
    run(TargetStore(target.inspect), target, 7, "theirs")
    assert begun.intent is not None
    settled = settle(begun, begun.intent, version=1, table_id="t", rows=1, at=NOW)
    with pytest.raises(StateConflict):
        store.save(settled)


def test_a_load_that_landed_before_its_settling_is_adopted_with_what_it_left_ahead(
    store: TargetStore, target: FakeTarget
) -> None:
    begun = store.save(planned(PipelineState(pipeline="orders", metadata={"note": "x"}), 5))
    assert begun.intent is not None
    target.load(begun, begun.intent)
    found = store.get("orders")
    assert found is not None
    assert (found.intent, found.mark, found.ahead) == (None, Position.before(5), begun.intent.ahead)
    assert found.metadata == {"note": "x"}
    assert found.revision > begun.revision
    assert store.get("orders") == found


def test_a_stale_save_is_refused_also_without_a_commit_between(store: TargetStore, target: FakeTarget) -> None:
    state = run(store, target, 5)
    store.save(state.but(run_count=2))
    with pytest.raises(StateConflict):
        store.save(state.but(run_count=3))


@pytest.mark.parametrize("to", [None, Position.before(3), Position.before(50)])
def test_a_reset_is_refused_rather_than_forgotten(store: TargetStore, target: FakeTarget, to: Position | None) -> None:
    state = run(store, target, 5)
    with pytest.raises(StateError, match="reset") as caught:
        store.save(reset(state, to))
    assert "--full-refresh" in str(caught.value.hint)
    assert store.get("orders") == state


def test_it_can_not_be_deleted_and_has_neither_leases_nor_history(store: TargetStore) -> None:
    with pytest.raises(StateError, match="lives in its target"):
        store.delete("orders")
    assert not isinstance(store, SupportsLeases)
    assert not isinstance(store, SupportsHistory)


def test_a_lease_of_another_store_is_not_taken_for_a_guard(store: TargetStore) -> None:
    with pytest.raises(StateError, match="no leases"):
        store.save(PipelineState(pipeline="orders"), Lease(resource="t", owner=an_owner(), epoch=1))
