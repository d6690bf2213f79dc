"""Faults as ordinary components: any source, target or store, failing on demand at a named step.

A fault is written `STEP[#N]:WHEN=ACTION`, e.g. `target.load:after=kill` or `store.save#2:before=error`:

STEP    kind and port method: `source.look`, `source.read`, `target.load`, `store.save`, …
N       which call of it, counted from 1 (the first when left out)
WHEN    `before` or `after` the call itself
ACTION  `kill` (SIGKILL to this process; `kill@0.5` half a second later, in the middle of things), `stop` (SIGSTOP),
        `error` (the component fails), `cut` (it fails in a way that may pass), `unknown` (nobody can say whether it
        was done), `delay@SECONDS`

`python -m floodmark.testing.faults target.load:after=kill -- run orders` is the command line with these faults in it.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal

from floodmark.errors import OutcomeUnknown, SourceError, StateError, TargetError
from floodmark.registry import Registry

FaultKind = Literal["source", "target", "store"]

# `publish` is of no port: a target has it where a load is written first and takes effect later.
STEPS: dict[FaultKind, tuple[str, ...]] = {
    "source": ("describe", "nulls", "count", "look", "next_cut", "snapshot", "read"),
    "target": ("inspect", "load", "find", "publish", "care"),
    "store": ("get", "save", "acquire", "beat", "release", "record_run"),
}

_BEATING = threading.Lock()
"""Held by the lease's thread while it writes."""

_ERRORS = {"source": SourceError, "target": TargetError, "store": StateError}
_FORM = re.compile(
    r"(source|target|store)\.(\w+)(?:#(\d+))?:(before|after)=(kill|stop|error|cut|unknown|delay)(?:@([\d.]+))?"
)


@dataclass(frozen=True)
class Fault:
    kind: FaultKind
    method: str
    call: int
    when: str
    action: str
    seconds: float

    @classmethod
    def parse(cls, text: str) -> Fault:
        match = _FORM.fullmatch(text)
        if match is None or match[2] not in STEPS[match[1]]:  # type: ignore[index]
            raise ValueError(f"{text!r} is not STEP[#N]:WHEN=ACTION; steps: {', '.join(step_names())}")
        kind, method, call, when, action, seconds = match.groups()
        return cls(kind, method, int(call or 1), when, action, float(seconds or 0))  # type: ignore[arg-type]

    def strike(self) -> None:
        step = f"{self.kind}.{self.method} ({self.when})"
        if self.action == "kill" and self.seconds:
            threading.Timer(self.seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
        elif self.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.action == "stop":
            # Not in the middle of a beat: a process frozen inside a transaction locks the store for everybody.
            with _BEATING:
                os.kill(os.getpid(), signal.SIGSTOP)
        elif self.action == "delay":
            time.sleep(self.seconds)
        elif self.action == "unknown":
            raise OutcomeUnknown(f"injected: nobody knows what became of {step}")
        else:
            raise _ERRORS[self.kind](f"injected failure at {step}", transient=self.action == "cut")


def step_names() -> list[str]:
    return [f"{kind}.{method}" for kind, methods in STEPS.items() for method in methods]


@dataclass
class FaultPlan:
    """Counts calls and strikes where a fault says so. One plan may span several components."""

    faults: tuple[Fault, ...]
    calls: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, *texts: str) -> FaultPlan:
        return cls(tuple(Fault.parse(text) for text in texts))

    def faulty(self, kind: FaultKind, component: type) -> type:
        """A subclass whose port methods strike; a subclass, so that it has just the capabilities of the original."""
        methods = {m: self._wrapped(kind, m, getattr(component, m)) for m in STEPS[kind] if hasattr(component, m)}
        return type(f"Faulty{component.__name__}", (component,), methods)

    def registry(self, base: Registry | None = None) -> Registry:
        """The same components as in `base`, each with these faults in it."""
        base = base or Registry.default()
        wrapped = base.copy()
        kinds: Iterable[tuple[FaultKind, Any]] = (("source", "source"), ("target", "target"), ("store", "state"))
        for kind, registered in kinds:
            for name in base.names(registered):
                wrapped.register(registered, name, self._lazily(kind, base, registered, name))
        return wrapped

    def _lazily(self, kind: FaultKind, base: Registry, registered: Any, name: str) -> Callable[..., Any]:
        def make(*args: Any, **options: Any) -> Any:
            return self.faulty(kind, base.get(registered, name))(*args, **options)

        return make

    def _wrapped(self, kind: FaultKind, method: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def call(*args: Any, **options: Any) -> Any:
            step = f"{kind}.{method}"
            count = self.calls[step] = self.calls.get(step, 0) + 1
            mine = [f for f in self.faults if (f.kind, f.method, f.call) == (kind, method, count)]
            for fault in mine:
                if fault.when == "before":
                    fault.strike()
            with _BEATING if step == "store.beat" else nullcontext():
                result = original(*args, **options)
            for fault in mine:
                if fault.when == "after":
                    fault.strike()
            return result

        return call


def main(arguments: list[str]) -> int:
    from floodmark.cli.main import main as floodmark

    split = arguments.index("--")
    plan = FaultPlan.of(*arguments[:split])
    return floodmark(arguments[split + 1 :], registry=plan.registry())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
