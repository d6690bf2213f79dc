"""When care is due: by the table's own times, and only what was asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from floodmark.care.due import due, head_in_danger
from floodmark.model.care import Condition
from floodmark.model.ledger import HeadRef, PipelineState
from floodmark.model.outcome import Head, Kept, Landed, Rows, TargetState
from floodmark.model.target import MaintenanceSpec

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def head(ordinal: int, at: datetime = NOW) -> Head:
    return Head(
        pipeline="orders",
        lane="main",
        ordinal=ordinal,
        batch=f"b{ordinal}",
        start=None,
        after=None,
        until=None,
        mark=None,
        epoch=1,
        run="r",
        at=at,
    )


def kept(ordinal: int, at: datetime) -> Kept:
    state = PipelineState(pipeline="orders", head=HeadRef(ordinal=ordinal, batch=f"b{ordinal}"))
    return Kept(table_id="t", seen=9, at=at, version=8, head=head(ordinal), state=state)


def table(**known: Any) -> TargetState:
    times: dict[str, Any] = {"made_at": NOW, "compacted_at": NOW, "vacuumed_at": NOW, **known}
    of_care = {name: times[name] for name in ("made_at", "compacted_at", "vacuumed_at")}
    condition = Condition(**of_care, keep_within=15 * DAY, is_ours=times.get("ours", True))
    landed = tuple(times.get("landed", ()))
    return TargetState(exists=True, landed=landed, kept=times.get("kept"), condition=condition)


def landed(ordinal: int, at: datetime) -> Landed:
    return Landed(head(ordinal, at), ordinal, "t", Rows())


def test_nothing_is_due_where_all_was_done_just_now() -> None:
    assert due(MaintenanceSpec(), table(), NOW) == ()


def test_a_first_load_makes_good_what_it_left() -> None:
    assert due(MaintenanceSpec(), TargetState(exists=False), NOW) == ("compact",)
    assert due(MaintenanceSpec.model_validate({"compact": "off"}), TargetState(exists=False), NOW) == ()


def test_nothing_is_due_on_a_target_that_wants_no_care() -> None:
    assert due(MaintenanceSpec(), TargetState(exists=True), NOW) == ()


@pytest.mark.parametrize(
    ("name", "after", "step"), [("compacted_at", "1h", "compact"), ("vacuumed_at", "7d", "vacuum")]
)
def test_each_is_due_when_its_time_has_passed(name: str, after: str, step: str) -> None:
    interval = getattr(MaintenanceSpec(), step)
    assert due(MaintenanceSpec(), table(**{name: NOW - interval}), NOW) == (step,)
    assert due(MaintenanceSpec(), table(**{name: NOW - interval + timedelta(seconds=1)}), NOW) == ()
    off = MaintenanceSpec.model_validate({step: "off"})
    assert due(off, table(**{name: NOW - 100 * DAY}), NOW) == ()
    longer = MaintenanceSpec.model_validate({step: "30d"})
    assert due(longer, table(**{name: NOW - 29 * DAY}), NOW) == ()
    assert str(MaintenanceSpec().model_dump()[step]) == after


def test_a_table_that_was_never_cared_for() -> None:
    young = table(compacted_at=None, vacuumed_at=None)
    assert due(MaintenanceSpec(), young, NOW) == ("compact",)
    old = table(compacted_at=None, vacuumed_at=None, made_at=NOW - 8 * DAY)
    assert due(MaintenanceSpec(), old, NOW) == ("compact", "vacuum")


def test_what_a_vacuum_removes_is_gone_so_it_is_asked_for_where_the_table_is_not_ours() -> None:
    theirs = table(ours=False, vacuumed_at=None, made_at=NOW - 8 * DAY)
    assert due(MaintenanceSpec(), theirs, NOW) == ()
    assert due(MaintenanceSpec.model_validate({"vacuum": "7d"}), theirs, NOW) == ("vacuum",)


def test_heads_are_kept_before_the_log_forgets_them_whatever_else_is_off() -> None:
    off = MaintenanceSpec.model_validate({"compact": "off", "vacuum": "off"})
    assert due(off, table(made_at=NOW - 15 * DAY), NOW) == ("keep",)
    assert due(off, table(made_at=NOW - 15 * DAY, kept=kept(3, NOW - DAY)), NOW) == ()
    assert due(off, table(made_at=NOW - 99 * DAY, kept=kept(3, NOW - 15 * DAY)), NOW) == ("keep",)


def test_a_quiet_run_cares_only_for_a_head_that_may_be_forgotten() -> None:
    old, young = landed(3, NOW - 16 * DAY), landed(3, NOW - 14 * DAY)
    assert head_in_danger(table(landed=[old]), NOW)
    assert not head_in_danger(table(landed=[young]), NOW)
    assert not head_in_danger(table(landed=[old], kept=kept(3, NOW - 16 * DAY)), NOW)
    assert head_in_danger(table(landed=[old], kept=kept(2, NOW - 16 * DAY)), NOW)
    assert not head_in_danger(table(), NOW)
    assert not head_in_danger(TargetState(exists=True, landed=(old,)), NOW)
