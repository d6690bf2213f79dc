"""The ledger from the target's own commits: for state that lives there, and for state that was lost."""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.model.ledger import Intent, PipelineState, reset, settle
from floodmark.model.outcome import Head, Kept, Landed, Rows
from floodmark.model.position import Position
from floodmark.model.window import MAIN, Window, loaded_beyond


def rebuild(pipeline: str, landed: Sequence[Landed], kept: Kept | None = None) -> PipelineState | None:
    """`landed` is newest first. The commits are settled again, oldest first, with the rules they were settled by, on
    top of what the table has kept of earlier ones; the newest head decides where the mark stands. None without a head
    of this pipeline."""
    commits = _in_order(pipeline, landed)
    if kept is not None:
        commits = [commit for commit in commits if commit.head.ordinal > kept.head.ordinal]
    if not commits:
        return None if kept is None else kept.state
    newest = commits[-1].head
    state = PipelineState(pipeline=pipeline, start=commits[0].head.start) if kept is None else kept.state
    for commit in commits:
        head = commit.head
        state = settle(
            _aligned(state, head),
            _intent(head),
            version=commit.version,
            table_id=commit.table_id,
            rows=_loaded(commit.rows),
            at=head.at,
        )
    if state.mark != newest.mark:
        # Heads that don't fit together: the newest is still the truth, the way there is unknown.
        state = _covered(state.but(start=newest.start, windows=()), newest, newest.mark)
    return state.but(
        identity=newest.identity,
        run_count=_runs(commits, kept),
        last_run_id=newest.run,
        last_run_at=newest.at,
    )


def _runs(commits: Sequence[Landed], kept: Kept | None) -> int:
    runs = {commit.head.run for commit in commits}
    return len(runs) if kept is None else kept.state.run_count + len(runs - {kept.head.run})


def _in_order(pipeline: str, landed: Sequence[Landed]) -> list[Landed]:
    """Oldest first. Table care stamps the newest head again, so one ordinal may be there several times."""
    commits: list[Landed] = []
    for commit in reversed(landed):
        is_new = not commits or commit.head.ordinal > commits[-1].head.ordinal
        if commit.head.pipeline == pipeline and is_new:
            commits.append(commit)
    return commits


def _aligned(state: PipelineState, head: Head) -> PipelineState:
    """The state as it stood before this head's load: resets leave no commit of their own, but show in the next one."""
    if head.full:
        return state
    if head.lane != MAIN:
        # A backfill moves nothing: its head says where the main lane stood.
        return _at(state, head, head.mark).but(ahead=head.ahead)
    return _at(state, head, head.mark if _lies_ahead(head) else head.after)


def _at(state: PipelineState, head: Head, mark: Position | None) -> PipelineState:
    """With the mark where it stood."""
    starts_again = mark == head.start and state.mark != mark
    if head.start != state.start or starts_again:
        state = reset(state, head.start)
    if state.mark == mark or mark is None:
        return state
    known = state.mark
    if known is not None and not (known.is_comparable and mark.is_comparable and known.precedes(mark)):
        # Below the mark, or not comparable: only a reset explains it, and `reached` then keeps an append from doubling.
        state = reset(state, head.start)
    return _covered(state, head, mark)


def _lies_ahead(head: Head) -> bool:
    """One of several loads above the mark: it begins where the one before ended, and proves nothing."""
    if head.after is None or head.lane != MAIN or head.full:
        return False
    if head.mark is None:
        return True
    return head.mark.is_comparable and head.after.is_comparable and head.mark.precedes(head.after)


def _covered(state: PipelineState, head: Head, until: Position | None) -> PipelineState:
    """One window for commits that are missing here: expired from the history, or empty and never written."""
    if state.mark == until:
        return state
    known = state.head.ordinal if state.head else 0
    window = Window(
        after=state.mark,
        until=until,
        state="committed",
        batch="",
        ordinal=head.ordinal - 1,
        folded=max(head.ordinal - known - 2, 0),
    )
    kept = tuple(w for w in state.windows if w.state != "loaded")
    return state.but(windows=(*kept, window, *loaded_beyond(state.windows, until)))


def _intent(head: Head) -> Intent:
    return Intent(
        batch=head.batch,
        ordinal=head.ordinal,
        after=head.after,
        until=head.until,
        mark=head.after if _lies_ahead(head) else head.mark,
        lane=head.lane,
        run=head.run,
        full=head.full,
        ahead=head.ahead,
    )


def _loaded(rows: Rows) -> int | None:
    return None if rows.inserted is None and rows.updated is None else rows.loaded
