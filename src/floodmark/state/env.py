"""State in a variable: read from the environment, and printed for the caller to keep."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from typing import Any

from floodmark.errors import ConfigError, StateError
from floodmark.model import ledger
from floodmark.model.lease import Lease
from floodmark.model.ledger import PipelineState
from floodmark.model.window import fold
from floodmark.state.form import check_format, damaged, from_text, to_form, to_state, to_text
from floodmark.state.rules import next_state

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

KEPT_WINDOWS = 4
"""Windows printed one by one: a variable ends at 128 KiB on Linux, and older windows are of no use to the next run."""


class EnvStore:
    """A process can't change the environment of the one that started it, so what is saved lives as long as this
    process; `to_keep` is what the next one needs. The value has the form of `floodmark state export`. A value that was
    not kept is no loss, just an older state: the next run finds what landed in the target's own commits."""

    def __init__(self, variable: str, environ: Mapping[str, str] | None = None) -> None:
        if not NAME.fullmatch(variable):
            raise ConfigError(
                f"{variable!r} is not the name of a variable", hint="letters, digits and _, as in env:FLOODMARK_STATE"
            )
        self._variable = variable
        self._environ = os.environ if environ is None else environ
        self._where = f"the variable {variable}"
        self._lock = threading.RLock()
        self._states: dict[str, PipelineState] | None = None
        self._has_changed = False

    def get(self, pipeline: str) -> PipelineState | None:
        with self._lock:
            return self._known().get(pipeline)

    def save(self, state: PipelineState, lease: Lease | None = None) -> PipelineState:
        if lease is not None:
            raise StateError("state in a variable has no leases", pipeline=state.pipeline)
        with self._lock:
            states = self._known()
            stored = states.get(state.pipeline)
            saved = next_state(state, 0 if stored is None else stored.revision)
            # Now, not when it is printed: what has no JSON form must not get in.
            to_form(PipelineState(pipeline=state.pipeline, metadata=state.metadata))
            states[state.pipeline] = saved
            self._has_changed = True
            return saved

    def delete(self, pipeline: str) -> bool:
        with self._lock:
            was_there = self._known().pop(pipeline, None) is not None
            self._has_changed = self._has_changed or was_there
            return was_there

    def list_pipelines(self) -> list[str]:
        with self._lock:
            return sorted(self._known())

    def to_keep(self) -> dict[str, str]:
        with self._lock:
            if not self._has_changed:
                return {}
            states = {name: s.but(windows=fold(s.windows, KEPT_WINDOWS)) for name, s in self._known().items()}
            forms = {name: to_form(state) for name, state in sorted(states.items())}
            return {self._variable: to_text({"format": ledger.FORMAT, "pipelines": forms})}

    def close(self) -> None:
        """Nothing is held open."""

    def _known(self) -> dict[str, PipelineState]:
        if self._states is None:
            text = self._environ.get(self._variable, "").strip()
            self._states = self._read(from_text(text, self._where)) if text else {}
        return self._states

    def _read(self, form: Any) -> dict[str, PipelineState]:
        if not isinstance(form, dict) or not isinstance(form.get("pipelines"), dict):
            raise damaged(self._where, "it holds no map of pipelines")
        check_format(form.get("format"), self._where)
        return {name: to_state(state, self._where) for name, state in form["pipelines"].items()}
