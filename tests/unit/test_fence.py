"""The proof itself, on listings that are made up: when a bound counts as proven, and what stays pending."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from floodmark.model.ledger import PendingLook
from floodmark.model.position import Position
from floodmark.model.table import Column, Cursor
from floodmark.ports import LookRequest
from floodmark.sources.bound import clock_bound
from floodmark.sources.fence import Caveat, Fence
from floodmark.sources.mysql.fence import READ_ONLY, MysqlWriters, Statement, Transaction
from floodmark.sources.postgres.fence import PostgresWriters

NOW = datetime(2026, 11, 16, 12, 0, 0, 123456, tzinfo=UTC)
IDS = Cursor((Column("id", "bigint", "integer"),))
TIMES = Cursor((Column("at", "timestamptz", "timestamp", zoned=True),))
CAVEAT = Caveat("something is not sure")


@dataclass
class Script:
    """One listing after the other; the last one stays."""

    listings: list[PostgresWriters | None]

    def __call__(self) -> PostgresWriters | None:
        return self.listings.pop(0) if len(self.listings) > 1 else self.listings[0]


def writers(*names: str) -> PostgresWriters:
    return PostgresWriters(frozenset(names))


def ask(
    *listings: PostgresWriters | None, cursor: Cursor = IDS, pending: PendingLook | None = None, caveat: bool = False
) -> tuple[Position | None, PendingLook | None]:
    fence = Fence(Script(list(listings)), (CAVEAT,) if caveat else (), sleep=lambda _: None)
    request = LookRequest(
        cursor,
        Position.before(5) if cursor is IDS else None,
        rereads=True,
        ahead_of_proof=True,
        delay=timedelta(minutes=5),
        wait=timedelta(milliseconds=1) if len(listings) == 1 else timedelta(seconds=5),
        pending=pending,
    )
    return fence.bound(request, NOW, lambda: Position.before(100))


def waits_for(*names: str, taken: datetime = NOW, bound: int = 50) -> PendingLook:
    return PendingLook(bound=Position.before(bound), taken_at=taken, writers=names)


def test_without_writers_the_bound_holds_at_once() -> None:
    assert ask(writers()) == (Position.before(100), None)


def test_a_writer_that_ends_in_time_is_waited_for() -> None:
    assert ask(writers("v1/1"), writers("v1/1"), writers("v2/7")) == (Position.before(100), None)


def test_a_writer_that_stays_leaves_the_look_pending_and_the_mark_where_it_is() -> None:
    assert ask(writers("v1/1")) == (Position.before(5), waits_for("v1/1", bound=100))


def test_a_pending_look_is_proven_once_its_own_writers_have_ended() -> None:
    limit, pending = ask(writers("v9/9"), pending=waits_for("v1/1"))
    assert limit == Position.before(50)
    assert pending == waits_for("v9/9", bound=100)


def test_a_pending_look_keeps_its_bound_while_one_of_its_writers_is_there() -> None:
    """A later bound would have the same writer before it, and could starve for ever."""
    limit, pending = ask(writers("v1/1", "v9/9"), pending=waits_for("v1/1", "v2/2"))
    assert limit == Position.before(5)
    assert pending == waits_for("v1/1")


def test_a_prepared_transaction_may_be_any_of_the_known() -> None:
    limit, pending = ask(writers("p700"), pending=waits_for("v1/1"))
    assert limit == Position.before(5)
    assert pending == waits_for("p700")


def test_nobody_can_say_so_nothing_is_proven() -> None:
    assert ask(None) == (Position.before(5), None)
    assert ask(None, pending=waits_for("v1/1")) == (Position.before(5), waits_for("v1/1"))


def test_who_can_say_a_moment_later_is_asked_again_even_without_a_wait() -> None:
    """MySQL's list may be a copy that another look has just read."""
    fence = Fence(Script([None, writers()]), sleep=lambda _: None)
    request = LookRequest(IDS, None, rereads=True, ahead_of_proof=True, delay=timedelta(0), wait=timedelta(0))
    assert fence.bound(request, NOW, lambda: Position.before(100)) == (Position.before(100), None)


def test_with_a_caveat_a_sequence_has_to_grow_old_as_well() -> None:
    assert ask(writers(), caveat=True) == (Position.before(5), waits_for(bound=100))
    young = waits_for(taken=NOW - timedelta(minutes=4))
    assert ask(writers(), pending=young, caveat=True) == (Position.before(5), young)
    old = waits_for(taken=NOW - timedelta(minutes=6))
    assert ask(writers(), pending=old, caveat=True) == (Position.before(50), waits_for(bound=100))


def test_a_clock_stays_behind_by_the_margin_and_with_a_caveat_by_the_delay() -> None:
    assert ask(writers(), cursor=TIMES)[0] == clock_bound(TIMES, NOW - timedelta(seconds=1))
    assert ask(writers(), cursor=TIMES, caveat=True)[0] == clock_bound(TIMES, NOW - timedelta(minutes=5))


@pytest.mark.parametrize("precision", [0, 3, 6])
def test_the_bound_lies_below_what_any_later_clock_can_be_rounded_to(precision: int) -> None:
    cursor = Cursor((Column("at", "timestamp", "timestamp", zoned=True, precision=precision),))
    unit = timedelta(microseconds=10 ** (6 - precision))
    bound = clock_bound(cursor, NOW).values[0]
    assert isinstance(bound, datetime)
    assert bound + unit <= NOW
    assert NOW - bound <= 2 * unit


def local_hours() -> Iterator[datetime]:
    """The night in which Berlin's clocks go back, at 01:00 UTC from 03:00 to 02:00."""
    start = datetime(2026, 10, 24, 22, 0, tzinfo=UTC)
    return (start + timedelta(minutes=7 * i) for i in range(60))


def test_in_the_hour_that_comes_twice_the_bound_stays_below_what_its_second_time_writes() -> None:
    from floodmark.sources.sql import local_time

    cursor = Cursor((Column("at", "timestamp", "timestamp"),), "Europe/Berlin")
    for moment in local_hours():
        bound = clock_bound(cursor, moment).values[0]
        assert isinstance(bound, datetime)
        for later in (m for m in local_hours() if m >= moment):
            assert local_time(bound, cursor) < local_time(later, cursor), (moment, later)


@pytest.mark.parametrize("precision", [0, 6])
def test_in_the_night_that_skips_an_hour_the_bound_lies_before_the_skip(precision: int) -> None:
    """One tick before 03:00 on a wall in Berlin is no time at all."""
    from floodmark.sources.sql import local_time

    cursor = Cursor((Column("at", "timestamp", "timestamp", precision=precision),), "Europe/Berlin")
    skip = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
    for moment in (skip + timedelta(seconds=s) for s in (-3600, -1, 0, 0.5, 1, 3600)):
        bound = clock_bound(cursor, moment).values[0]
        assert isinstance(bound, datetime)
        assert moment - timedelta(hours=1, seconds=2) <= bound < moment
        assert local_time(bound, cursor) < local_time(moment, cursor)


class TestMysqlNames:
    """A statement, then the transaction around it, then nobody."""

    def listing(
        self, *busy: tuple[int, int], open_: tuple[tuple[int, str, int], ...] = (), xa: tuple[str, ...] = ()
    ) -> MysqlWriters:
        statements = frozenset(Statement(*statement) for statement in busy)
        return MysqlWriters(statements, frozenset(Transaction(*t) for t in open_), frozenset(xa))

    def test_a_statement_that_ended_lives_on_in_its_transaction(self) -> None:
        known = self.listing((5, 1000)).writers
        assert self.listing((5, 1001)).left(known) == {"c5@1000"}, "the same one, timed a little differently"
        assert self.listing(open_=((5, "12:00:01", 7),)).left(known) == {"t5@12:00:01#7"}
        assert self.listing((6, 1000), open_=((7, "12:00:01", 8),)).left(known) == frozenset()

    def test_the_next_statement_of_a_busy_connection_is_another_one(self) -> None:
        """Or one that is never seen asleep would be waited for without end."""
        known = self.listing((5, 1000)).writers
        assert self.listing((5, 1120)).left(known) == frozenset()
        assert self.listing((5, 1120), open_=((5, "12:00:01", 7),)).left(known) == {"t5@12:00:01#7"}

    def test_the_next_transaction_of_a_connection_is_another_one(self) -> None:
        known = self.listing(open_=((5, "12:00:01", 7),)).writers
        assert self.listing((5, 1000), open_=((5, "12:00:01", 7),)).left(known) == known
        assert self.listing(open_=((5, "12:00:02", 7),)).left(known) == frozenset()
        assert self.listing(open_=((5, "12:00:01", 9),)).left(known) == frozenset()

    def test_a_transaction_that_begins_to_write_gets_another_number(self) -> None:
        known = self.listing(open_=((5, "12:00:01", READ_ONLY + 3),)).writers
        assert self.listing(open_=((5, "12:00:01", 9),)).left(known) == {"t5@12:00:01#9"}

    def test_a_prepared_one_without_a_connection_may_be_any_of_the_known(self) -> None:
        known = self.listing(open_=((5, "12:00:01", 7),)).writers
        assert self.listing(xa=("x77",)).left(known) == {"x77"}
