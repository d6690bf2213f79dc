"""From a piece of work to its result: what goes wrong is told there and remembered in the history, never raised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from floodmark.errors import FloodmarkError
from floodmark.javawords import LOST, LOST_HINT, is_lost
from floodmark.loader import Surroundings
from floodmark.model.event import RunFinished
from floodmark.model.ledger import PipelineState
from floodmark.model.outcome import RunResult
from floodmark.observe.tally import Tally, to_record
from floodmark.ports import EventSink, StateStore, SupportsHistory
from floodmark.preflight import Preflight


def reported(
    preflight: Preflight, around: Surroundings, tally: Tally, sink: EventSink, work: Callable[[], PipelineState]
) -> RunResult:
    state, failure = None, None
    try:
        state = work()
    except Exception as error:
        failure = _told(error)
        if isinstance(failure, FloodmarkError):
            failure.located(pipeline=preflight.spec.name, declared_at=preflight.spec.at())
    finally:
        preflight.source.close()
    result = _remembered(tally.result(state, failure), preflight.store, around.secrets)
    sink.emit(RunFinished(result))
    return result


def _told(error: Exception) -> Exception:
    """Spark may end in the middle of any step."""
    if isinstance(error, FloodmarkError) or not is_lost(error):
        return error
    lost = FloodmarkError(LOST, hint=LOST_HINT)
    lost.__cause__ = error
    return lost


def _remembered(result: RunResult, store: StateStore, secrets: tuple[str, ...]) -> RunResult:
    """In the history, where there is one. A run that can't be recorded has still ended as it did: that it failed, and
    why, must not be hidden behind a full disk, nor a load that landed be called a failure."""
    if isinstance(store, SupportsHistory):
        try:
            store.record_run(to_record(result, secrets))
        except FloodmarkError as error:
            notice = f"this run is not in the history: {error.message}"
            return replace(result, notices=(*result.notices, notice))
    return result
