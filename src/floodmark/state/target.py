"""No store at all: the target's own commits are the ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from floodmark.errors import StateConflict, StateError
from floodmark.model.lease import Lease
from floodmark.model.ledger import Ahead, HeadRef, Intent, PipelineState
from floodmark.model.outcome import TargetState
from floodmark.model.rebuild import rebuild
from floodmark.model.window import MAIN
from floodmark.state.rules import next_state

ELSEWHERE = "use a store of its own, for example state: sqlite:///.floodmark/state.db"


class TargetStore:
    """What the target's heads don't tell (intent, pending look, rows ahead, counts, metadata) is kept for the life of
    this process only; a run that dies is recovered from the heads. No leases and no history: two runners are told
    apart when they commit, and only what landed is known."""

    def __init__(self, inspect: Callable[[str], TargetState], pipelines: Sequence[str] = ()) -> None:
        self._inspect = inspect
        self._pipelines = tuple(pipelines)
        self._kept: dict[str, PipelineState] = {}

    def get(self, pipeline: str) -> PipelineState | None:
        derived = self._derived(pipeline)
        kept = self._kept.get(pipeline)
        if kept is None:
            return derived
        if derived is not None and _is_behind(kept.head, derived.head):
            kept = self._kept[pipeline] = _adopted(derived, kept)
        return kept

    def save(self, state: PipelineState, lease: Lease | None = None) -> PipelineState:
        """Checked against the target, kept in memory."""
        if lease is not None:
            raise StateError("state in the target has no leases", pipeline=state.pipeline, hint=ELSEWHERE)
        derived = self._derived(state.pipeline)
        # A full refresh knows of no commit and asks for none: its ordinal is what keeps it apart from others.
        anew = state.head is None and state.intent is not None and state.intent.full
        if derived is not None and not anew and _is_behind(state.head, derived.head):
            raise StateConflict(
                f"the target of {state.pipeline} holds a newer commit than this run knows of",
                pipeline=state.pipeline,
                hint="another runner loaded it: run it again",
            )
        if derived is not None and _was_reset(state, derived):
            raise StateError(
                f"a reset of {state.pipeline} can't be kept: its state is what the target holds",
                pipeline=state.pipeline,
                hint=f"load it anew with `floodmark run {state.pipeline} --full-refresh`, or {ELSEWHERE}",
            )
        known = self._kept.get(state.pipeline, derived)
        saved = next_state(state, 0 if known is None else known.revision)
        self._kept[state.pipeline] = saved
        return saved

    def delete(self, pipeline: str) -> bool:
        raise StateError(
            f"the state of {pipeline} lives in its target and goes with it",
            pipeline=pipeline,
            hint="drop the target table, or load it anew with --full-refresh",
        )

    def list_pipelines(self) -> list[str]:
        return sorted(name for name in {*self._pipelines, *self._kept} if self.get(name) is not None)

    def close(self) -> None:
        """Nothing is held open."""

    def _derived(self, pipeline: str) -> PipelineState | None:
        target = self._inspect(pipeline)
        state = rebuild(pipeline, target.landed, target.kept)
        # The ordinal serves as revision: the same for everyone who looks, and higher after each commit.
        return state if state is None or state.head is None else state.but(revision=state.head.ordinal)


def _is_behind(ours: HeadRef | None, theirs: HeadRef | None) -> bool:
    if ours is None or theirs is None:
        return theirs is not None
    return ours.ordinal < theirs.ordinal or (ours.ordinal == theirs.ordinal and ours.batch != theirs.batch)


def _was_reset(state: PipelineState, derived: PipelineState) -> bool:
    """A reset moves the start, or puts the mark back on it. A mark *ahead* of the head is none: rows recognised as
    loaded move it without a commit."""
    if state.head != derived.head:
        return False
    return state.start != derived.start or (state.mark == state.start and derived.mark != derived.start)


def _adopted(derived: PipelineState, kept: PipelineState) -> PipelineState:
    """The target has moved on. The look and the rows ahead belonged to the old mark; but if it was our own load that
    landed, what it left ahead is known from its intent."""
    intent = kept.intent
    ours = intent is not None and derived.head is not None and intent.batch == derived.head.batch
    return derived.but(
        revision=kept.revision + 1,
        ahead=_ahead(kept, intent) if ours and intent is not None else None,
        run_count=max(kept.run_count, derived.run_count),
        rows_total=max(kept.rows_total, derived.rows_total),
        metadata=kept.metadata,
    )


def _ahead(kept: PipelineState, intent: Intent) -> Ahead | None:
    return intent.ahead if intent.lane == MAIN else kept.ahead
