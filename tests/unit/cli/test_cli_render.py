"""The sketches of the product's look, as lines."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from floodmark.cli.layout import lay_out
from floodmark.cli.render_plan import plan_document, plan_table, store_lines
from floodmark.cli.render_run import closing_lines, headline, result_document, summary_table
from floodmark.cli.render_state import list_table, state_lines
from floodmark.cli.render_status import gap_lines, runs_table, status_document, status_table, windows_table
from floodmark.errors import ConfigError, LeaseHeld
from floodmark.model.ledger import Ahead, Intent, PendingLook, reset
from floodmark.model.outcome import PipelineStatus, Rows
from floodmark.model.plan import Guarantee
from floodmark.model.position import Position

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Fakes


def a_status(fakes: Fakes, **changes: Any) -> PipelineStatus:
    fields: dict[str, Any] = {
        "pipeline": "orders",
        "health": "ok",
        "mark": fakes.MARK,
        "lag": timedelta(minutes=3, seconds=12),
        "last_run": fakes.record(),
        "rows_total": 5_006_000,
        "gaps": 0,
        "guarantee": "fenced",
        "intent": False,
    }
    return PipelineStatus(**(fields | changes))


def test_plan_table(fakes: Fakes) -> None:
    ids = {"after": Position.before(81_204_113), "until": Position.before(81_377_020)}
    lines = list(
        lay_out(
            plan_table(
                fakes.spec(), {"orders": fakes.plan(), "events": fakes.plan("events", rows=172_907, slices=2, **ids)}
            ),
            None,
        )
    )
    assert lines == [
        "pipeline  change                window                                       ~rows  slices  guarantee",
        "orders    timestamp updated_at  2026-11-14 09:12:03 → 2026-11-15 10:00:41    9,986       1  fenced",
        "events    sequence  event_id    81,204,113 → 81,377,020                    172,907       2  fenced",
    ]


def test_a_weak_guarantee_says_why_and_what_to_do(fakes: Fakes) -> None:
    weak = Guarantee("delayed", "5m", "no right to see other sessions", "GRANT pg_read_all_stats TO etl")
    plan = fakes.plan(after=None, first=True, guarantee=weak, rows=None, rows_waiting=12)
    lines = list(lay_out(plan_table(fakes.spec(), {"orders": plan}), None))
    assert "first load → 2026-11-15 10:00:41" in lines[1]
    assert lines[1].endswith("–       1  delayed 5m")
    assert lines[2:] == [
        "  ⚠ no right to see other sessions: GRANT pg_read_all_stats TO etl",
        "  ! 12 rows wait: younger than 5m",
    ]


def test_windows_of_other_plans(fakes: Fakes) -> None:
    plans = {"orders": fakes.plan(full=True), "events": fakes.plan(nothing_new=True, rows=0, slices=0)}
    lines = list(lay_out(plan_table(fakes.spec(), plans), None))
    assert "whole table" in lines[1]
    assert "nothing new since 2026-11-14 09:12:03" in lines[2]


def test_a_plan_that_failed_keeps_its_row(fakes: Fakes) -> None:
    lines = list(
        lay_out(plan_table(fakes.spec(), {"orders": ConfigError("no such table"), "events": fakes.plan()}), None)
    )
    assert lines[1].startswith("orders    timestamp updated_at  –")
    assert lines[1].endswith("✗ no such table")


def test_store_lines_name_only_what_is_missing() -> None:
    assert store_lines({"leases": None, "history": "keeps no runs"}) == ["! state store: keeps no runs"]


def test_plan_document(fakes: Fakes) -> None:
    form = plan_document(fakes.spec(), {"orders": fakes.plan(), "events": ConfigError("no")}, {"leases": None})
    first, second = form["pipelines"]
    assert first["window"]["after"] == {"timestamp": "2026-11-14T09:12:03.000000Z"}
    assert first["guarantee"]["name"] == "fenced"
    assert first["change"] == {"by": "timestamp", "columns": ["updated_at"]}
    assert second["error"]["message"] == "no"
    assert form["state"] == {"leases": None}


def test_headline_and_closing_line(fakes: Fakes) -> None:
    assert headline(fakes.plan()) == "orders  2026-11-14 09:12:03 → 2026-11-15 10:00:41  ~9,986 rows  fenced"
    assert "first load from 2026-11-14 09:12:03 → " in headline(fakes.plan(first=True))
    assert "from the beginning → " in headline(fakes.plan(after=None)), "a long lookback, or a backfill"
    assert headline(fakes.plan(after=None, first=True, rows=31_200_000, slices=16)) == (
        "orders  first load → 2026-11-15 10:00:41  ~31,200,000 rows  16 slices  fenced"
    )
    assert closing_lines(fakes.result()) == [
        "✓ orders  7,984 updated, 2,002 inserted, 0 deleted in 2.6 s   mark 2026-11-15 10:00:41   version 42"
    ]


def test_nothing_new(fakes: Fakes) -> None:
    result = fakes.result(nothing_new=True, rows=Rows(), seconds={"look": 0.04})
    assert closing_lines(result) == ["✓ orders  nothing new (checked in 0.04 s)"]


def test_an_append_speaks_of_inserts_only(fakes: Fakes) -> None:
    result = fakes.result("events", rows=Rows(172_907, 172_907, 0, 0), mark=Position.before(81_377_020), version=None)
    assert closing_lines(result, appends=True) == ["✓ events  172,907 inserted in 2.6 s   mark 81,377,020"]
    assert closing_lines(fakes.result(rows=Rows(read=5)))[0].startswith("✓ orders  5 read in")
    assert closing_lines(fakes.result(rows=Rows()))[0].startswith("✓ orders  – rows in")


def test_what_waits_what_is_left_and_what_was_noticed(fakes: Fakes) -> None:
    result = fakes.result(
        rows_waiting=12, guarantee="delayed 5m", complete=False, notices=("clock set back", "shown before")
    )
    lines = closing_lines(result, shown=["shown before"])
    assert lines[0] == "! orders  clock set back"
    assert lines[2:] == [
        "  12 rows wait: younger than 5m",
        "  slices are left: floodmark run orders --until-complete takes them all",
    ]
    assert "1 row waits for open transactions" in closing_lines(fakes.result(rows_waiting=1))[1]


def test_summary_of_several(fakes: Fakes) -> None:
    failed = fakes.result(
        "audit", success=False, rows=Rows(), seconds={}, mark=None, failure=LeaseHeld("running already\nmore")
    )
    quiet = fakes.result("users", nothing_new=True, rows=Rows(), seconds={"look": 0.04})
    assert list(lay_out(summary_table([fakes.result(), quiet, failed]), None)) == [
        "pipeline  result          rows  seconds  mark",
        "orders    ✓ done         9,986    2.6 s  2026-11-15 10:00:41",
        "users     ✓ nothing new      0   0.04 s  2026-11-15 10:00:41",
        "audit     ✗ failed           –        –  –                    running already",
    ]


def test_result_document(fakes: Fakes) -> None:
    form = result_document(fakes.result())
    assert form["rows"] == {"read": 9_986, "inserted": 2_002, "updated": 7_984, "deleted": 0}
    assert form["window"]["until"] == form["mark"] == {"timestamp": "2026-11-15T10:00:41.000000Z"}
    assert form["seconds"]["load"] == 2.2
    assert abs(form["seconds"]["total"] - 2.6) < 1e-9
    failed = result_document(fakes.result(success=False, errors=("no",), failure=ConfigError("no", hint="mend it")))
    assert (failed["errors"], failed["hints"], failed["failure"]["type"]) == (["no"], ["mend it"], "ConfigError")


def test_status_table(fakes: Fakes) -> None:
    late = a_status(
        fakes,
        health="failed",
        lag=timedelta(days=1, hours=10),
        last_run=fakes.record(success=False, error="no route\nto host", rows_inserted=None, rows_updated=None),
        gaps=1,
        guarantee="delayed 5m",
        intent=True,
    )
    never = a_status(
        fakes, health="never ran", mark=None, lag=None, last_run=None, rows_total=0, gaps=None, guarantee=""
    )
    table = status_table({"orders": a_status(fakes), "audit": late, "new": never}, now=fakes.STARTED)
    assert list(lay_out(table, None)) == [
        "pipeline  health     mark                    lag  last run        rows  loaded in all  gaps  guarantee",
        "orders    ok         2026-11-15 10:00:41  3m 12s  10:03 ✓ 2.6 s  9,986      5,006,000     0  fenced",
        "audit     failed     2026-11-15 10:00:41  1d 10h  10:03 ✗ 2.6 s      –      5,006,000     1  delayed 5m",
        "  ! no route",
        "  ! a load was begun and its outcome is not recorded: the next run finds out",
        "new       never ran  –                         –  –                  –              –     –  –",
    ]


def test_status_document(fakes: Fakes) -> None:
    first, second = status_document({"orders": a_status(fakes), "audit": ConfigError("no")})
    assert first["lag_seconds"] == 192
    assert first["last_run"]["mark"] == {"timestamp": "2026-11-15T10:00:41.000000Z"}
    assert second["error"]["exit_code"] == 2


def test_history_tables(fakes: Fakes) -> None:
    records = [fakes.record(), fakes.record(success=False, error="boom\nmore", mark=None, version=None)]
    lines = list(lay_out(runs_table(records, now=fakes.STARTED), None))
    assert "10:03:00  ✓       2026-11-14 09:12:03 → 2026-11-15 10:00:41  9,986" in lines[1]
    assert lines[2].endswith("boom")
    windows = list(lay_out(windows_table(fakes.state(), now=fakes.STARTED), None))
    assert windows[1] == "   1  committed  beginning  2026-11-15 10:00:41  9,986  10:03:00  b1"


def test_a_gap_is_told(fakes: Fakes) -> None:
    skipped = reset(fakes.state(), fakes.at("2026-11-16 00:00:00"))
    assert gap_lines(skipped) == ["! gap  2026-11-15 10:00:41 → 2026-11-16 00:00:00: no window covers it"]


def test_state_lines_tell_what_is_open(fakes: Fakes) -> None:
    intent = Intent(batch="b2", ordinal=2, after=fakes.MARK, until=None, mark=None)
    look = PendingLook(bound=fakes.MARK, taken_at=fakes.STARTED, writers=("7/12",))
    state = fakes.state(
        intent=intent,
        look=look,
        ahead=Ahead(count=12, checksum="c"),
        identity={"source": "a", "target": "b", "change": {"by": "none"}, "mode": "upsert", "keys": ["id"]},
        metadata={"owner": "ana"},
    )
    text = "\n".join(state_lines(state))
    assert "mark            2026-11-15 10:00:41" in text
    assert "a → b, none, upsert by id" in text
    assert "load 2, 2026-11-15 10:00:41 → whole table, batch b2: the next run finds out whether it landed" in text
    assert "2026-11-15 10:00:41: 1 writer open" in text
    assert "12 rows above the mark" in text
    assert "metadata owner  ana" in text


def test_state_list_points_out_the_orphan(fakes: Fakes) -> None:
    table = list_table({"orders": None, "old": fakes.state("old")}, frozenset({"orders"}))
    lines = list(lay_out(table, None))
    assert lines[1].endswith("never ran")
    assert lines[2].endswith("! not in the project file any more")
