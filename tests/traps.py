"""One way to commit late at a time, held open for as long as a whole run takes: not by chance, as in a race."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.lab import ok
from tests.race_writers import Stage, Writer
from tests.races import LOOK, MOST_RUNS_AFTER, WRITERS, By, RaceLab
from tests.services import wait_for

from floodmark.project import Project

HARMLESS: dict[tuple[str, By], set[str]] = {
    # The id is taken when the row is written, after the pause.
    ("postgres", "sequence"): {"late first write"},
    # So is the time: it is the statement's, not the transaction's.
    ("mariadb", "timestamp"): {"late first write"},
    ("mariadb", "sequence"): {"late first write", "slow statement", "slow rows"},
}
"""What loses nothing even where nobody looks."""
DRAWN_BY_APPLICATION = "id taken early"
"""Nothing that the look at a sequence waits for, unless it is told to wait for every open transaction."""
NEVER_HELD = {"one row", "some rows", "rolled back", "reader"}

SHUT = {"postgres": "SELECT pg_advisory_lock({})", "mariadb": "SELECT get_lock('gate {}', 60)"}
OPEN = {"postgres": "SELECT pg_advisory_unlock({})", "mariadb": "SELECT release_lock('gate {}')"}
MEET = {"postgres": "pg_advisory_xact_lock_shared({})", "mariadb": "get_lock('gate {}', 60)"}
AT_GATE = {
    "postgres": "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
    "mariadb": "SELECT count(*) FROM information_schema.processlist WHERE state = 'User lock'",
}


class GatedStage(Stage):
    """Every pause of a writer is a gate that the test opens: an event in Python, or a lock where SQL waits."""

    def __init__(self, kind: str, keeper: Writer) -> None:
        super().__init__(0, pause=0)
        self.kept = 1
        self._kind = kind
        self._keeper = keeper
        self._events: queue.SimpleQueue[threading.Event] = queue.SimpleQueue()
        self._locks: list[int] = []
        self._shut = 0

    def wait(self, seconds: float) -> None:  # noqa: ARG002 - a gate stays shut for as long as a run takes
        gate = threading.Event()
        self._events.put(gate)
        assert gate.wait(120), "nobody opened the gate"

    def stall(self, sleep: str) -> str:  # noqa: ARG002
        self._shut += 1
        self._keeper.sql(SHUT[self._kind].format(self._shut))
        self._locks.append(self._shut)
        return MEET[self._kind].format(self._shut)

    def gate(self) -> Callable[[], object] | None:
        """How to open the gate at which the writer stands; None while it is on its way."""
        if not self._events.empty():
            return self._events.get().set
        if self._locks and self._keeper.sql(AT_GATE[self._kind])[0][0]:
            number = self._locks.pop(0)
            return lambda: self._keeper.sql(OPEN[self._kind].format(number))
        return None


@dataclass
class Traps:
    lab: RaceLab
    by: By
    option: str = LOOK
    only: str = ""
    names: list[str] = field(default_factory=list)

    def run(self) -> set[str]:
        """The ways to commit late that lost a row; append, where nothing mends it later."""
        self.lab.declare(self.by, "append", self.option)
        project = self.lab.load()
        make = WRITERS[self.lab.kind]
        keeper, overtaker = (make(0, self.lab.url, Stage(0, pause=0)) for _ in range(2))
        stage = GatedStage(self.lab.kind, keeper)
        writer = make(1, self.lab.url, stage)
        for session in (keeper, overtaker, writer):
            session.connect()
        for name in writer.actions:
            if name not in NEVER_HELD and (not self.only or name == self.only):
                self.names.append(name)
                self._spring(name, writer, stage, overtaker, project)
        for session in (keeper, overtaker, writer):
            session.close()
        for _ in range(MOST_RUNS_AFTER):
            if (result := ok(project.run("orders"))).nothing_new and not result.rows_waiting:
                break
        project.close()
        found = {row[1] for row in self.lab.target_rows()}
        return {val.partition(":")[0] for _, val, _ in self.lab.source_rows() if val not in found}

    def _spring(self, name: str, writer: Writer, stage: GatedStage, overtaker: Writer, project: Project) -> None:
        writer.label = f"{name}:"
        failures: list[BaseException] = []

        def act() -> None:
            try:
                writer.actions[name]()
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=act, daemon=True)
        thread.start()
        gates: list[Callable[[], object]] = []
        while True:
            wait_for(lambda: _found(stage.gate(), gates) or not thread.is_alive(), f"{name} at a gate")
            if not gates:
                break
            overtaker.insert()
            ok(project.run("orders"))
            gates.pop()()
        if failures:
            raise AssertionError(f"{name} failed") from failures[0]


def _found(gate: Callable[[], object] | None, gates: list[Callable[[], object]]) -> bool:
    if gate is not None:
        gates.append(gate)
    return gate is not None
