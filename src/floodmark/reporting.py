"""From a piece of work to its result: what goes wrong is told there and remembered in the history, never raised."""

from __future__ import annotations

from collections.abc import Callable

from floodmark.errors import FloodmarkError
from floodmark.loader import Surroundings
from floodmark.model.event import RunFinished
from floodmark.model.ledger import PipelineState
from floodmark.model.outcome import RunResult
from floodmark.observe.tally import Tally, to_record
from floodmark.ports import EventSink, SupportsHistory
from floodmark.preflight import Preflight


def reported(
    preflight: Preflight, around: Surroundings, tally: Tally, sink: EventSink, work: Callable[[], PipelineState]
) -> RunResult:
    state, failure = None, None
    try:
        state = work()
    except Exception as error:
        failure = error
        if isinstance(error, FloodmarkError):
            error.located(pipeline=preflight.spec.name, declared_at=preflight.spec.at())
    finally:
        preflight.source.close()
    result = tally.result(state, failure)
    if isinstance(preflight.store, SupportsHistory):
        preflight.store.record_run(to_record(result, around.secrets))
    sink.emit(RunFinished(result))
    return result
