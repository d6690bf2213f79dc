"""Stories that once ended badly, each as short as it can be told."""

from __future__ import annotations

import pytest
from tests.world import Keeper, Mode, World
from tests.writers import SECOND


def write(world: World, count: int = 1) -> None:
    for _ in range(count):
        world.shop.put(world.shop.version(world.shop.new_key()))


def write_late(world: World, value: int) -> None:
    world.shop.put(world.shop.version(world.shop.new_key(), value))


def run(world: World, batch_rows: int = 1000, max_slices: int | None = None, *, full: bool = False) -> None:
    process = world.run(batch_rows, max_slices, full=full)
    process.go()
    assert process.failure is None


def assert_equal(world: World) -> None:
    world.check([], 0)
    assert sorted(world.target.rows) == sorted(world.shop.rows)


class TestAnAppendKnowsWhatItHasLoadedAheadOfTheMark:
    """Or it would load it again and not replace it."""

    def test_when_a_quiet_run_moves_the_mark(self) -> None:
        world = World("append", timed=True, keeper="leases", lookback=3 * SECOND)
        for _ in range(2):
            write(world)
            world.shop.clock += 2 * SECOND
            run(world)
            world.shop.clock += 3 * SECOND
            run(world)
        assert_equal(world)

    def test_when_the_lookback_is_taken_out(self) -> None:
        world = World("append", timed=False, keeper="leases", lookback=3)
        write(world, 4)
        run(world)
        world.lookback = None
        write(world)
        run(world)
        assert_equal(world)

    def test_when_it_is_taken_out_and_the_next_run_ends_half_way(self) -> None:
        world = World("append", timed=False, keeper="leases", lookback=8)
        write(world, 6)
        run(world)
        world.lookback = None
        write(world)
        run(world, 2, max_slices=1)
        assert world.mark == 3
        run(world)
        assert_equal(world)

    def test_when_the_mark_moved_by_itself_and_the_state_is_lost_after_a_backfill(self) -> None:
        world = World("append", timed=True, keeper="leases", lookback=3 * SECOND)
        for _ in range(3):
            write(world)
            world.shop.clock += SECOND
        world.shop.clock += SECOND
        run(world)
        world.shop.clock += SECOND
        run(world)
        world.backfill(None, None, 1000).go()
        world.memory.content = None
        write(world)
        world.shop.clock += 2 * SECOND
        run(world)
        assert_equal(world)


class TestAStateThatIsRebuilt:
    def test_from_several_loads_above_the_mark(self) -> None:
        world = World("append", timed=False, keeper="target", lookback=3)
        for _ in range(3):
            write(world)
            run(world, 1)
        write(world, 2)
        run(world, 1, max_slices=2)
        run(world)
        assert_equal(world)

    def test_from_a_backfill_that_followed_a_reset(self) -> None:
        world = World("append", timed=False, keeper="leases")
        write(world, 3)
        run(world)
        world.move(1).go()
        world.backfill(0, 1, 1000).go()
        world.memory.content = None
        run(world)
        assert_equal(world)


def test_a_lookback_over_several_slices_commits_no_empty_one() -> None:
    world = World("append", timed=False, keeper="leases", lookback=3)
    write(world, 2)
    run(world)
    write_late(world, 1)
    run(world, 1)
    assert_equal(world)
    assert all(commit.landed.head.after != commit.landed.head.until for commit in world.target.commits)


def test_a_load_of_ours_may_leave_the_table_empty() -> None:
    world = World("append", timed=False, keeper="leases", lookback=3)
    write(world)
    run(world)
    row = world.shop.rows[0]
    world.shop.put(world.shop.version(row.key))
    write(world)
    # The row has moved up, and the stretch that it was in is loaded first.
    run(world, 1, max_slices=1)
    assert world.target.rows == ()
    run(world)
    assert_equal(world)


class TestAFullRefresh:
    @pytest.mark.parametrize("moved", [False, True])
    def test_of_an_append_while_nothing_is_settled(self, moved: bool) -> None:
        world = World("append", timed=False, keeper="leases")
        write(world, 2)
        writer = world.shop.begin()
        run(world, full=True)
        assert world.mark is None
        if moved:
            world.move(1).go()
        world.shop.end(writer, commit=False)
        run(world)
        assert_equal(world)

    @pytest.mark.parametrize("keeper", ["leases", "no leases", "target"])
    @pytest.mark.parametrize("mode", ["append", "upsert"])
    def test_of_a_table_that_is_loaded_wherever_the_state_is_kept(self, keeper: Keeper, mode: Mode) -> None:
        world = World(mode, timed=False, keeper=keeper)
        for _ in range(2):
            write(world, 3)
            run(world, full=True)
            assert_equal(world)
