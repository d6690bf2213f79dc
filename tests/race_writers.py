"""Writers that commit late, in every way that databases let them: each a thread with a session of its own.

What makes them dangerous to a cursor is always the same. A value is taken early (`now()`, an id) and its row becomes
visible late, when others have long committed higher values. They differ in what the server shows of them meanwhile.
"""

from __future__ import annotations

import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

RUNS_HELD = 2
"""A transaction that is open this long: at least one whole run happens between its value and its commit."""


class Stage:
    """What the writers of one race share: when to stop, how long to pause, and how many runs have ended."""

    def __init__(
        self,
        seed: int,
        *,
        pause: float,
        hold: bool = False,
        updates: bool = False,
        early_ids: bool = True,
    ) -> None:
        self.seed = seed
        self.pause = pause
        self.hold = hold
        """One transaction is open across whole runs, for certain. Until it ends no mark can move past it, so it keeps
        the others from doing harm where somebody looks."""
        self.updates = updates
        """Of anybody's rows: an older transaction may then put its older time over a younger one's."""
        self.early_ids = early_ids
        """Ids drawn by the application before it writes."""
        self.kept = 0.8
        """The share of prepared transactions that are committed in the end."""
        self.stop = threading.Event()
        self.held = threading.Event()
        """That transaction has committed."""
        self._runs = 0
        self._turn = threading.Condition()

    def wait(self, seconds: float) -> None:
        """Ends with the race."""
        self.stop.wait(seconds)

    def stall(self, sleep: str) -> str:
        return sleep

    def run_ended(self) -> None:
        with self._turn:
            self._runs += 1
            self._turn.notify_all()

    def end(self) -> None:
        self.stop.set()
        with self._turn:
            self._turn.notify_all()

    def wait_for_runs(self, count: int) -> bool:
        """False when the race ended before that."""
        with self._turn:
            until = self._runs + count
            self._turn.wait_for(lambda: self._runs >= until or self.stop.is_set())
            return self._runs >= until


Action = Callable[[], None]


class Writer(threading.Thread, ABC):
    """One session that does one random thing after the other. The same seed and number choose the same things."""

    now = "now()"
    """What an application writes into a modified-at column."""
    sleep = ""
    """A function of the database, with a place for the seconds."""
    label = ""
    """Begins the values that this writer writes."""

    def __init__(self, number: int, url: str, stage: Stage) -> None:
        super().__init__(name=f"writer {number}", daemon=True)
        self.number = number
        self.url = url
        self.stage = stage
        self.rng = random.Random(f"{stage.seed}/{number}")
        self.written = 0
        """Rows of transactions that committed; a row that was updated counts again."""
        self.conflicts = 0
        self.failure: BaseException | None = None
        self._values = 0
        self._open = 0

    # -- what each database brings --------------------------------------------------------------------------------

    @abstractmethod
    def connect(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Its rows, if it has any. Nothing is committed but by a statement that says so, or by autocommit."""

    @abstractmethod
    def is_conflict(self, error: Exception) -> bool:
        """A deadlock, which any writer may meet."""

    @property
    @abstractmethod
    def own_actions(self) -> Mapping[str, Action]: ...

    # -- the thread -----------------------------------------------------------------------------------------------

    def run(self) -> None:
        try:
            self.connect()
            if self.number == 0 and self.stage.hold:
                self.hold()
            actions = list(self.actions.values())
            while not self.stage.stop.is_set():
                self._act(self.rng.choice(actions))
                self.stage.stop.wait(self.rng.uniform(0, 0.1))
        except BaseException as error:
            self.failure = error
        finally:
            self.close()

    def _act(self, action: Action) -> None:
        try:
            action()
        except Exception as error:
            if not self.is_conflict(error):
                raise
            self.conflicts += 1
            self.rollback()

    @property
    def actions(self) -> dict[str, Action]:
        usual: dict[str, Action] = {
            "one row": self.one_row,
            "some rows": self.some_rows,
            "several statements": self.several_statements,
            "late first write": self.late_first_write,
            "idle": self.idle,
            "rolled back": self.rolled_back,
            "savepoint": self.savepoint,
            "reader": self.reader,
        }
        if self.stage.updates:
            usual |= {"update": self.update, "late update": self.late_update}
        return {**usual, **self.own_actions}

    # -- words ----------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Mostly short; now and then as long as the race allows."""
        self.stage.wait(self._seconds())

    def stall(self) -> str:
        """The same inside a statement, as SQL."""
        return self.stage.stall(self.sleep.format(self._seconds()))

    def _seconds(self) -> float:
        return self.stage.pause * self.rng.random() ** 2

    def value(self) -> str:
        self._values += 1
        return f"{self.label}{self.number}-{self._values}"

    def insert(self, rows: int = 1, into: str = "orders") -> None:
        values = ", ".join(f"('{self.value()}', {self.number})" for _ in range(rows))
        self.sql(f"INSERT INTO {into} (val, writer) VALUES {values}")
        self.wrote(rows)

    def wrote(self, rows: int) -> None:
        self._open += rows

    def committed(self) -> None:
        self.written, self._open = self.written + self._open, 0

    def begin(self) -> None:
        self.sql("BEGIN")

    def commit(self) -> None:
        self.sql("COMMIT")
        self.committed()

    def rollback(self) -> None:
        self.sql("ROLLBACK")
        self._open = 0

    # -- what any database can do ---------------------------------------------------------------------------------

    def hold(self) -> None:
        """Overtaken for certain: another session commits a higher value and whole runs see it, before this one ends."""
        self.begin()
        self.insert()
        other = type(self)(self.number, self.url, self.stage)
        other.connect()
        other.sql(f"INSERT INTO orders (val, writer) VALUES ('overtook', {self.number})")
        other.close()
        held = self.stage.wait_for_runs(RUNS_HELD)
        self.commit()
        self.written += 1
        if held:
            self.stage.held.set()

    def one_row(self) -> None:
        self.insert()
        self.committed()

    def some_rows(self) -> None:
        self.insert(self.rng.randint(2, 50))
        self.committed()

    def several_statements(self) -> None:
        self.begin()
        for _ in range(self.rng.randint(2, 4)):
            self.insert(self.rng.randint(1, 5))
            self.pause()
        self.commit()

    def late_first_write(self) -> None:
        """Open, and with a transaction's time of its own, long before anything shows that it writes."""
        self.begin()
        self.sql("SELECT current_timestamp")
        self.pause()
        self.insert()
        self.commit()

    def idle(self) -> None:
        self.begin()
        self.insert()
        self.pause()
        self.commit()

    def rolled_back(self) -> None:
        self.begin()
        self.insert(3)
        self.pause()
        self.rollback()

    def savepoint(self) -> None:
        self.begin()
        self.insert()
        self.sql("SAVEPOINT half")
        kept = self._open
        self.insert(2)
        self.pause()
        self.sql("ROLLBACK TO SAVEPOINT half")
        self._open = kept
        self.insert()
        self.pause()
        self.commit()

    def reader(self) -> None:
        self.begin()
        self.sql("SELECT count(*) FROM orders")
        self.pause()
        self.commit()

    def update(self) -> None:
        self._update(self._some_ids())
        self.committed()

    def late_update(self) -> None:
        self.begin()
        ids = self._some_ids()
        self.pause()
        self._update(ids)
        self.pause()
        self.commit()

    def _some_ids(self) -> list[int]:
        """Half of them among the first few, where writers meet."""
        count = self.rng.randint(1, 4)
        first = self.rng.random() < 0.5
        rows = self.sql(f"SELECT id FROM orders ORDER BY id LIMIT {12 if first else 1000}")
        return sorted(self.rng.choice(rows)[0] for _ in range(count)) if rows else []

    def _update(self, ids: Sequence[int]) -> None:
        for row in dict.fromkeys(ids):
            self.sql(f"UPDATE orders SET val = '{self.value()}', updated_at = {self.now} WHERE id = {row}")
            self.wrote(1)
