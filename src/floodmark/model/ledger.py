"""The ledger: which windows were planned, loaded, committed. The mark is derived from it, never set by a load."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from floodmark.model.position import Position, StoredPosition, has_passed
from floodmark.model.record import Record
from floodmark.model.window import MAIN, Window, fold, loaded_beyond, uncovered

FORMAT = 1
"""Version of the stored form; a store refuses a newer one."""


class Ahead(Record):
    """Rows loaded above the mark, as the source showed them: recognised at the next look, they cost no second load."""

    count: int
    checksum: str
    until: StoredPosition | None = None
    """Just beyond the highest of them."""


class Intent(Record):
    """Written before a load: which commit to look for if the run dies."""

    batch: str
    ordinal: int
    after: StoredPosition | None
    until: StoredPosition | None
    mark: StoredPosition | None
    """Where the mark stands once this has landed: `until`, or less where the rest is not proven yet."""
    lane: str = MAIN
    run: str = ""
    full: bool = False
    """Replaces the whole table and begins the ledger anew."""
    replaces: bool = False
    """The range may hold rows from before a reset, so the load replaces it instead of adding to it."""
    ahead: Ahead | None = None
    server: str = ""
    nulls: bool = False
    """Not the window but the rows without a cursor value."""


class PendingLook(Record):
    """A bound that is not proven yet, and who may still write below it."""

    bound: StoredPosition
    taken_at: datetime
    """By the source's clock."""
    writers: tuple[str, ...] = ()
    server: str = ""


class ServerSeen(Record):
    """The server behind the last look: another one, or the same one set back, may write below the mark."""

    identity: str
    """Of the server and its timeline; empty where it has none to tell."""
    log: int | None = None
    """How far its write-ahead log had come."""
    clock: datetime


class NullsSeen(Record):
    """Rows without a cursor value, as they were when last counted."""

    count: int
    checksum: str = ""
    at: datetime


class HeadRef(Record):
    """The target's head as the ledger last saw it."""

    ordinal: int
    batch: str
    version: int | None = None
    table_id: str | None = None


class PipelineState(Record):
    """All that a store keeps of one pipeline. `revision` is for compare-and-swap; a store raises it on each save."""

    pipeline: str
    revision: int = 0
    start: StoredPosition | None = None
    """Where the unbroken run of windows begins; a reset moves it."""
    reached: StoredPosition | None = None
    """After a reset to an earlier position: how far rows had been loaded before it."""
    windows: tuple[Window, ...] = ()
    intent: Intent | None = None
    look: PendingLook | None = None
    ahead: Ahead | None = None
    head: HeadRef | None = None
    server: ServerSeen | None = None
    nulls: NullsSeen | None = None
    fell_to: StoredPosition | None = None
    """The source's highest value when a run last refused because it lay below the mark. It stays until somebody has
    answered, or the source would simply grow past the mark again, over rows that nobody read."""
    unfilled: tuple[str, ...] = ()
    """Columns that came later than rows of the table, which are still to be read again."""
    identity: dict[str, Any] = Field(default_factory=dict)
    """The declared source, cursor, keys and target that this state belongs to."""
    run_count: int = 0
    last_run_id: str | None = None
    last_run_at: datetime | None = None
    rows_total: int = 0
    metadata: dict[str, Any] = Field(default_factory=dict)
    """Free for the user."""

    @property
    def mark(self) -> Position | None:
        """The end of the unbroken run of committed windows. Needs equality only, so it holds for text too.
        Other lanes lie inside what is committed: one that begins where a window does would cut the run short."""
        ends = {w.after: w.until for w in self.windows if w.is_committed and w.lane == MAIN and w.until is not None}
        end, seen = self.start, {self.start}
        while end in ends and ends[end] not in seen:
            end = ends[end]
            seen.add(end)
        return end

    def to_dict(self) -> dict[str, Any]:
        """`format` guards against an older reader; `mark` is there for people and derived again when read."""
        mark = self.mark
        return {"format": FORMAT, "mark": None if mark is None else mark.to_json(), **super().to_dict()}


def begin(state: PipelineState, intent: Intent) -> PipelineState:
    return state.but(intent=intent)


def settle(
    state: PipelineState, intent: Intent, *, version: int | None, table_id: str | None, rows: int | None, at: datetime
) -> PipelineState:
    """The intent has landed: its window is committed up to the proven mark, the rest of it is loaded ahead."""
    head = HeadRef(ordinal=intent.ordinal, batch=intent.batch, version=version, table_id=table_id)
    if intent.lane != MAIN:
        return _settle_aside(state, intent, head, rows, at)
    base = state.but(windows=(), start=intent.after, reached=None) if intent.full else state
    window = _committed(intent, intent.mark, rows, at)
    proves_nothing = intent.mark == intent.after and intent.until != intent.mark
    added: tuple[Window, ...] = () if proves_nothing else (window,)
    if intent.mark != intent.until:
        # How many of a split window's rows lie above the mark is not known.
        above = window.rows if proves_nothing else None
        added += (window.but(after=intent.mark, until=intent.until, state="loaded", rows=above),)
    # Of whole-table loads only the last says anything.
    kept = tuple(w for w in base.windows if w.state != "loaded" and not _is_whole(w))
    settled = base.but(
        windows=fold(kept + added + loaded_beyond(base.windows, intent.until)),
        intent=None,
        ahead=intent.ahead,
        head=head,
        rows_total=base.rows_total + (rows or 0),
    )
    return settled.but(reached=None) if has_passed(settled.mark, settled.reached) else settled


def holds_whole_table(state: PipelineState) -> bool:
    """The last load was one without an end, so rows may be anywhere."""
    return any(map(_is_whole, state.windows))


def _is_whole(window: Window) -> bool:
    return (window.after, window.until) == (None, None)


def _settle_aside(state: PipelineState, intent: Intent, head: HeadRef, rows: int | None, at: datetime) -> PipelineState:
    """A backfill: the target has a new head, and the mark, the rows ahead of it and the pending look stay."""
    window = _committed(intent, intent.until, rows, at)
    total = state.rows_total + (rows or 0)
    return state.but(windows=fold((*state.windows, window)), intent=None, head=head, rows_total=total)


def _committed(intent: Intent, until: Position | None, rows: int | None, at: datetime) -> Window:
    return Window(
        after=intent.after,
        until=until,
        state="committed",
        batch=intent.batch,
        ordinal=intent.ordinal,
        lane=intent.lane,
        rows=rows,
        at=at,
        server=intent.server,
    )


def advance(state: PipelineState, to: Position, ahead: Ahead | None, at: datetime) -> PipelineState:
    """Rows that were loaded ahead were seen again, unchanged, and are proven now: the mark moves without a load. The
    target's head stays behind, which costs a state rebuilt from it one re-read."""
    if state.head is None:
        return state
    window = Window(
        after=state.mark, until=to, state="committed", batch=state.head.batch, ordinal=state.head.ordinal, at=at
    )
    kept = tuple(w for w in state.windows if w.state != "loaded")
    return state.but(windows=fold((*kept, window, *loaded_beyond(state.windows, to))), ahead=ahead)


def reset(state: PipelineState, to: Position | None) -> PipelineState:
    """Start again at `to`. The head stays, so that the target is still recognised as ours; the windows go, or an old
    one that begins where a new one ends would carry the mark past rows that the reset wants read again."""
    reached = furthest(state)
    if has_passed(to, reached):
        # Forward: what was loaded stays known, and the stretch between shows as a gap.
        return state.but(start=to, intent=None, look=None, ahead=None, server=None, fell_to=None)
    # Of a load without an end nobody knows how far its rows go.
    whole = tuple(w for w in state.windows if _is_whole(w))
    return state.but(
        start=to, reached=reached, windows=whole, intent=None, look=None, ahead=None, server=None, fell_to=None
    )


def mark_at(state: PipelineState, moment: datetime) -> Position | None:
    """Where the mark stood then, as far as the windows that are still kept one by one can tell; never later."""
    ends = [w for w in state.windows if w.is_committed and w.lane == MAIN]
    end = state.start
    for window in ends:
        if window.after != end or window.at is None or window.at > moment:
            break
        end = window.until
    return end


def gaps(state: PipelineState) -> tuple[tuple[Position, Position], ...]:
    """Stretches that no window covers, left by a reset to a later position. Text has no order here, hence no gaps."""
    return uncovered(state.windows, state.start)


def furthest(state: PipelineState) -> Position | None:
    """How far rows may be in the target: also those from before an earlier reset, and of a load whose end is open."""
    ends = [w.until for w in state.windows]
    if state.intent is not None:
        ends.append(state.intent.until)
    found = state.reached
    for end in ends:
        # Text can't be compared here: the last one written stands, and `reached` then only says that there are rows.
        if end is not None and (found is None or not end.is_comparable or has_passed(end, found)):
            found = end
    return found
