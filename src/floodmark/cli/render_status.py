"""`status` and `history`: where each pipeline stands and what it has done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from floodmark.cli.failure import error_document, first_words
from floodmark.cli.figures import UNKNOWN, show_count, show_moment, show_position, show_seconds, show_span
from floodmark.cli.layout import Column, Row, Table
from floodmark.cli.render_plan import position_form
from floodmark.model.window import MAIN

if TYPE_CHECKING:
    from floodmark.model.ledger import PipelineState
    from floodmark.model.outcome import PipelineStatus, RunRecord

STATUS = (
    Column("pipeline"),
    Column("health"),
    Column("mark"),
    Column("lag", right=True),
    Column("last run"),
    Column("rows", right=True),
    Column("loaded in all", right=True),
    Column("gaps", right=True),
    Column("guarantee"),
)
RUNS = (
    Column("started"),
    Column("result"),
    Column("window"),
    Column("read", right=True),
    Column("inserted", right=True),
    Column("updated", right=True),
    Column("deleted", right=True),
    Column("slices", right=True),
    Column("seconds", right=True),
    Column("version", right=True),
)
WINDOWS = (
    Column("load", right=True),
    Column("state"),
    Column("from"),
    Column("to"),
    Column("rows", right=True),
    Column("at"),
    Column("batch"),
)


def status_table(statuses: Mapping[str, PipelineStatus | Exception], now: datetime | None = None) -> Table:
    rows = []
    for name, status in statuses.items():
        if isinstance(status, Exception):
            rows.append(Row((name, *[UNKNOWN] * (len(STATUS) - 1)), (f"✗ {first_words(status)}",)))
            continue
        last = status.last_run
        cells = (
            name,
            status.health,
            show_position(status.mark),
            show_span(status.lag),
            UNKNOWN
            if last is None
            else f"{show_moment(last.started_at, now)} {_sign(last)} {show_seconds(last.seconds)}",
            show_count(None if last is None else record_rows(last)),
            show_count(status.rows_total if last is not None or status.mark is not None else None),
            show_count(status.gaps),
            status.guarantee or UNKNOWN,
        )
        rows.append(Row(cells, tuple(f"! {note}" for note in _notes(status))))
    return Table(STATUS, rows)


def status_document(statuses: Mapping[str, PipelineStatus | Exception]) -> list[dict[str, Any]]:
    forms: list[dict[str, Any]] = []
    for name, status in statuses.items():
        if isinstance(status, Exception):
            forms.append({"pipeline": name, "error": error_document(status, name)})
            continue
        forms.append(
            {
                "pipeline": name,
                "health": status.health,
                "mark": position_form(status.mark),
                "lag_seconds": None if status.lag is None else status.lag.total_seconds(),
                "last_run": None if status.last_run is None else status.last_run.to_dict(),
                "rows_total": status.rows_total,
                "gaps": status.gaps,
                "guarantee": status.guarantee,
                "intent": status.intent,
                "notes": list(status.notes),
            }
        )
    return forms


def runs_table(records: Sequence[RunRecord], now: datetime | None = None) -> Table:
    rows = []
    for record in records:
        cells = (
            show_moment(record.started_at, now, seconds=True),
            f"{_sign(record)} nothing new" if record.nothing_new else _sign(record),
            _window(record),
            show_count(record.rows_read),
            show_count(record.rows_inserted),
            show_count(record.rows_updated),
            show_count(record.rows_deleted),
            str(record.slices),
            show_seconds(record.seconds),
            UNKNOWN if record.version is None else str(record.version),
        )
        rows.append(Row(cells, (record.error.splitlines()[0],) if record.error else ()))
    return Table(RUNS, rows)


def windows_table(state: PipelineState, now: datetime | None = None) -> Table:
    """Newest first, like the runs above it."""
    rows = []
    for window in reversed(state.windows):
        folded = f" and {window.folded:,} before it" if window.folded else ""
        cells = (
            str(window.ordinal) if window.lane == MAIN else f"{window.lane} {window.ordinal}",
            "loaded ahead" if window.state == "loaded" else window.state,
            _start(window.after),
            "whole table" if window.until is None else str(window.until),
            show_count(window.rows),
            show_moment(window.at, now, seconds=True),
            window.batch + folded,
        )
        rows.append(Row(cells))
    return Table(WINDOWS, rows)


def gap_lines(state: PipelineState) -> list[str]:
    from floodmark.model.ledger import gaps

    return [f"! gap  {after} → {until}: no window covers it" for after, until in gaps(state)]


def history_document(name: str, records: Sequence[RunRecord], state: PipelineState | None) -> dict[str, Any]:
    from floodmark.model.ledger import gaps

    return {
        "pipeline": name,
        "runs": [record.to_dict() for record in records],
        "windows": [] if state is None else [window.to_dict() for window in state.windows],
        "gaps": [] if state is None else [[position_form(a), position_form(b)] for a, b in gaps(state)],
    }


def record_rows(record: RunRecord) -> int | None:
    if record.rows_inserted is None and record.rows_updated is None:
        return 0 if record.success and record.nothing_new else None
    return (record.rows_inserted or 0) + (record.rows_updated or 0)


def _notes(status: PipelineStatus) -> list[str]:
    begun = ["a load was begun and its outcome is not recorded: the next run finds out"] if status.intent else []
    error = status.last_run.error if status.last_run and status.health in ("failed", "stopped") else None
    return [*([error.splitlines()[0]] if error else []), *begun, *status.notes]


def _window(record: RunRecord) -> str:
    if record.lane != MAIN:
        return f"backfill {_start(record.after)} → {show_position(record.until)}"
    if record.mark is None or record.nothing_new:
        return show_position(record.mark)
    return f"{_start(record.after)} → {record.mark}"


def _start(position: object) -> str:
    return "beginning" if position is None else str(position)


def _sign(record: RunRecord) -> str:
    return "✓" if record.success else "✗"
