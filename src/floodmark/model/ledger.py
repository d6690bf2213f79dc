"""The ledger: which windows were planned, loaded, committed. The mark is derived from it, never set by a load."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from floodmark.model.position import Position, StoredPosition
from floodmark.model.record import Record

FORMAT = 1
"""Version of the stored form; a store refuses a newer one."""

KEPT_WINDOWS = 8
"""Windows kept one by one; older ones are folded, so a commit costs the same after a million of them. Each one kept
costs every commit a little (benchmarks/ledger.py), and the runs are remembered by themselves."""

WindowState = Literal["planned", "loaded", "committed", "verified"]


class Window(Record):
    """Half-open `[after, until)`; None is the beginning, or for a full refresh the whole table."""

    after: StoredPosition | None
    until: StoredPosition | None
    state: WindowState
    batch: str
    ordinal: int
    lane: str = "main"
    rows: int | None = None
    at: datetime | None = None
    folded: int = 0
    """How many older windows this one stands for, beside itself."""

    @property
    def is_committed(self) -> bool:
        return self.state in ("committed", "verified")


class Ahead(Record):
    """Rows loaded above the mark, as the source showed them: recognised at the next look, they cost no second load."""

    count: int
    checksum: str


class Intent(Record):
    """Written before a load: which commit to look for if the run dies."""

    batch: str
    ordinal: int
    after: StoredPosition | None
    until: StoredPosition | None
    mark: StoredPosition | None
    """Where the mark stands once this has landed: `until`, or less where the rest is not proven yet."""
    lane: str = "main"
    run: str = ""
    full: bool = False
    """Replaces the whole table and begins the ledger anew."""
    replaces: bool = False
    """The range may hold rows from before a reset, so the load replaces it instead of adding to it."""
    ahead: Ahead | None = None


class PendingLook(Record):
    """A bound that is not proven yet, and who may still write below it."""

    bound: StoredPosition
    taken_at: datetime
    """By the source's clock."""
    writers: tuple[str, ...] = ()
    server: str = ""


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
        ends = {w.after: w.until for w in self.windows if w.is_committed and w.lane == "main" and w.until is not None}
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
    base = state.but(windows=(), start=intent.after, reached=None) if intent.full else state
    window = Window(
        after=intent.after,
        until=intent.mark,
        state="committed",
        batch=intent.batch,
        ordinal=intent.ordinal,
        lane=intent.lane,
        rows=rows,
        at=at,
    )
    proves_nothing = intent.mark == intent.after and intent.until != intent.mark
    added: tuple[Window, ...] = () if proves_nothing else (window,)
    if intent.mark != intent.until:
        # How many of a split window's rows lie above the mark is not known.
        above = window.rows if proves_nothing else None
        added += (window.but(after=intent.mark, until=intent.until, state="loaded", rows=above),)
    # Of whole-table loads only the last says anything.
    kept = tuple(w for w in base.windows if w.state != "loaded" and (w.after, w.until) != (None, None))
    settled = base.but(
        windows=fold(kept + added),
        intent=None,
        ahead=intent.ahead,
        head=HeadRef(ordinal=intent.ordinal, batch=intent.batch, version=version, table_id=table_id),
        rows_total=base.rows_total + (rows or 0),
    )
    return settled.but(reached=None) if _has_passed(settled.mark, settled.reached) else settled


def advance(state: PipelineState, to: Position, ahead: Ahead | None, at: datetime) -> PipelineState:
    """Rows that were loaded ahead were seen again, unchanged, and are proven now: the mark moves without a load. The
    target's head stays behind, which costs a state rebuilt from it one re-read."""
    if state.head is None:
        return state
    window = Window(
        after=state.mark, until=to, state="committed", batch=state.head.batch, ordinal=state.head.ordinal, at=at
    )
    kept = tuple(w for w in state.windows if w.state != "loaded")
    return state.but(windows=fold((*kept, window)), ahead=ahead)


def fold(windows: tuple[Window, ...], keep: int = KEPT_WINDOWS) -> tuple[Window, ...]:
    """Merge the oldest adjoining windows once there are more than we keep one by one. Where two don't adjoin (a gap, a
    change of state) folding goes on behind them, or a single gap would let the ledger grow for ever."""
    excess = len(windows) - keep
    if excess <= 0:
        return windows
    folded = [windows[0]]
    for window in windows[1:]:
        last = folded[-1]
        if excess <= 0 or last.until is None or not _adjoin(last, window):
            folded.append(window)
            continue
        rows = None if last.rows is None or window.rows is None else last.rows + window.rows
        folded[-1] = window.but(after=last.after, rows=rows, folded=last.folded + window.folded + 1)
        excess -= 1
    return tuple(folded)


def _adjoin(first: Window, second: Window) -> bool:
    return (first.until, first.state, first.lane) == (second.after, second.state, second.lane)


def reset(state: PipelineState, to: Position | None) -> PipelineState:
    """Start again at `to`. The head stays, so that the target is still recognised as ours; the windows go, or an old
    one that begins where a new one ends would carry the mark past rows that the reset wants read again."""
    reached = _furthest(state)
    if _has_passed(to, reached):
        # Forward: what was loaded stays known, and the stretch between shows as a gap.
        return state.but(start=to, intent=None, look=None, ahead=None)
    return state.but(start=to, reached=reached, windows=(), intent=None, look=None, ahead=None)


def gaps(state: PipelineState) -> tuple[tuple[Position, Position], ...]:
    """Stretches that no window covers, left by a reset to a later position. Text has no order here, hence no gaps."""
    edges = [(w.after, w.until) for w in state.windows if w.is_committed and w.until is not None]
    if state.start is not None:
        edges.append((state.start, state.start))
    if not all(p is None or p.is_comparable for edge in edges for p in edge):
        return ()
    # By position, not by commit: a gap that was filled later is none.
    edges.sort(key=lambda edge: () if edge[0] is None else edge[0].values)
    found: list[tuple[Position, Position]] = []
    end: Position | None = None
    for after, until in edges:
        if end is not None and after is not None and end.precedes(after):
            found.append((end, after))
        if end is None or _has_passed(until, end):
            end = until
    return tuple(found)


def _furthest(state: PipelineState) -> Position | None:
    """How far rows may be in the target: also those from before an earlier reset, and of a load whose end is open."""
    ends = [w.until for w in state.windows]
    if state.intent is not None:
        ends.append(state.intent.until)
    furthest = state.reached
    for end in ends:
        # Text can't be compared here: the last one written stands, and `reached` then only says that there are rows.
        if end is not None and (furthest is None or not end.is_comparable or _has_passed(end, furthest)):
            furthest = end
    return furthest


def _has_passed(position: Position | None, reached: Position | None) -> bool:
    if position is None or reached is None:
        return False
    if not (position.is_comparable and reached.is_comparable):
        return False
    return not position.precedes(reached)
