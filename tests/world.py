"""One pipeline from a made-up source to a target in memory, driven by the real runner, and what must always hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Literal

from tests.in_memory import LeasedPort, Memory, MemoryTarget, StorePort, TargetPort
from tests.processes import Process
from tests.writers import Row, Shop, ShopSource, Step, number_of, scalar_of

from floodmark.backfill import Backfill, Range
from floodmark.changes.sequence import SequenceChange
from floodmark.changes.timestamp import TimestampChange
from floodmark.loader import Surroundings
from floodmark.model.ledger import PipelineState
from floodmark.model.position import Position
from floodmark.model.spec import PipelineSpec, RetrySpec, SequenceSpec, SourceSpec, TimestampSpec
from floodmark.model.target import TargetSpec
from floodmark.model.window import KEPT_BACKFILLS, KEPT_WINDOWS, MAIN
from floodmark.ports import ChangeStrategy, StateStore
from floodmark.preflight import Preflight
from floodmark.runner import Runner
from floodmark.state.document import DocumentStore
from floodmark.state.target import TargetStore

Mode = Literal["append", "upsert"]
Keeper = Literal["leases", "no leases", "target"]
"""Where the state is kept: with leases, without, or nowhere but in the target."""

NOW = timedelta(0)
MOST_BYTES = 6_000


class Silent:
    def emit(self, event: object) -> None:
        """Nobody watches."""


class NoSpark:
    def interruptAll(self) -> None:
        """Nothing runs."""


@cache
def spec_of(mode: Mode, timed: bool, lookback: int | None, batch_rows: int) -> PipelineSpec:
    own: dict[str, Any] = {"column": "v", "delay": NOW, "wait": NOW}
    change: TimestampSpec | SequenceSpec
    if timed:
        back = None if lookback is None else timedelta(microseconds=lookback)
        change = TimestampSpec(by="timestamp", lookback=back, **own)
    else:
        change = SequenceSpec(by="sequence", lookback=lookback, **own)
    return PipelineSpec(
        name="p",
        source=SourceSpec(connection="shop", table="t"),
        change=change,
        target=TargetSpec(connection="lake", table="t", mode=mode, keys=("k",) if mode == "upsert" else ()),
        batch_rows=batch_rows,
        retries=RetrySpec(attempts=3, wait=NOW, longest_wait=NOW),
    )


@dataclass
class World:
    mode: Mode
    timed: bool
    keeper: Keeper
    lookback: int | None = None
    target: MemoryTarget = field(default_factory=MemoryTarget)
    memory: Memory = field(default_factory=Memory)
    troubles: list[str] = field(default_factory=list)
    _ids: Any = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.shop = Shop(self.timed)
        self.store = DocumentStore(self.memory)

    # -- processes ------------------------------------------------------------------------------------------------

    def run(self, batch_rows: int, max_slices: int | None = None, *, full: bool = False) -> Process:
        return self._process(batch_rows, lambda r: r.run(max_slices=max_slices, full_refresh=full), Runner)

    def backfill(self, after: int | None, until: int | None, batch_rows: int) -> Process:
        wanted = Range(self.value(after), self.value(until))
        return self._process(batch_rows, lambda b: b.run(wanted), Backfill)

    def move(self, to: int | None) -> Process:
        return self._process(1000, lambda r: r.move(self.value(to)), Runner)

    def value(self, number: int | None) -> object | None:
        return None if number is None else scalar_of(number, self.timed)

    def _process(self, batch_rows: int, work: Callable[[Any], Any], kind: type[Runner] | type[Backfill]) -> Process:
        """It knows the file as it is now, and goes on with that whatever is changed later."""
        spec = self.spec(batch_rows)
        around = Surroundings(
            root=Path(),
            spark=lambda *_: NoSpark(),  # type: ignore[arg-type]
            now=lambda: self.shop.now,
            new_id=lambda: f"id{next(self._ids)}",
            lease_ttl=timedelta(hours=1),
        )
        return Process(lambda step: work(kind(self._preflight(spec, step), around, Silent())))

    def spec(self, batch_rows: int = 1000) -> PipelineSpec:
        return spec_of(self.mode, self.timed, self.lookback, batch_rows)

    def _preflight(self, spec: PipelineSpec, step: Step) -> Preflight:
        target, source = TargetPort(self.target, step), ShopSource(self.shop, spec, step)
        change: ChangeStrategy
        if isinstance(spec.change, TimestampSpec):
            change = TimestampChange(spec.change, spec.at)
        else:
            assert isinstance(spec.change, SequenceSpec)
            change = SequenceChange(spec.change, spec.at)
        return Preflight(spec, source, change, target, self._opened(step))

    def _opened(self, step: Step) -> StateStore:
        if self.keeper == "target":
            kept = TargetStore(lambda _: TargetPort(self.target, step).inspect(deep=True), ("p",))
            return StorePort(kept, step, self.troubles)
        if self.keeper == "leases":
            return LeasedPort(self.store, step, self.troubles, leases=self.store)
        return StorePort(self.store, step, self.troubles)

    # -- what must hold -------------------------------------------------------------------------------------------

    def agreed(self) -> PipelineState:
        """The state that the next run would begin with."""
        return self._preflight(self.spec(), lambda: None).agreed()[0].state

    @property
    def mark(self) -> int | None:
        mark = self.agreed().mark
        return None if mark is None else number_of(mark)

    def check(self, skipped: list[tuple[int, int]], jumps: int) -> int | None:
        """The mark, if all is well."""
        state = self.agreed()
        mark = None if state.mark is None else number_of(state.mark)
        self.check_rows(mark, skipped)
        check_windows(state)
        check_size(state, jumps)
        return mark

    def check_rows(self, mark: int | None, skipped: list[tuple[int, int]]) -> None:
        """Below the mark the target is what the source is, but for stretches that a user has skipped."""
        held = self.target.rows
        assert max(Counter(held).values(), default=1) == 1, "a row is in the target twice"
        if self.mode == "upsert":
            assert len({row.key for row in held}) == len(held), "a key is in the target twice"
        if mark is None:
            return

        def counts(row: Row) -> bool:
            return row.value < mark and not any(low <= row.value < high for low, high in skipped)

        wanted = [row for row in self.shop.rows if counts(row)]
        if self.mode == "append":
            assert sorted(row for row in held if counts(row)) == sorted(wanted)
        else:
            assert not set(wanted) - set(held), "a row below the mark is missing, or an old version of it is there"

    def check_heads(self) -> None:
        """After a run that has ended well."""
        state = self.agreed()
        assert state.intent is None
        newest = self.target.inspect().landed[:1]
        heads = [(landed.head.ordinal, landed.head.batch) for landed in newest]
        assert heads == ([] if state.head is None else [(state.head.ordinal, state.head.batch)])


def check_windows(state: PipelineState) -> None:
    """Committed windows follow each other from start to mark; what lies apart is from before a jump forward."""
    main = [w for w in state.windows if w.lane == MAIN and w.is_committed]
    spans = sorted((_place(w.after), _place(w.until)) for w in main if w.until is not None)
    assert all(after < until for after, until in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans)), f"windows overlap: {spans}"
    start = _place(state.start)
    chain = [span for span in spans if span[0] >= start]
    ends = [start, *(until for _, until in chain)]
    assert [after for after, _ in chain] == ends[:-1], f"windows don't adjoin: {chain} from {start}"
    assert ends[-1] == _place(state.mark)


def check_size(state: PipelineState, jumps: int) -> None:
    main = [w for w in state.windows if w.lane == MAIN]
    assert len(main) <= KEPT_WINDOWS + 1 + jumps
    if not jumps:
        assert len(state.windows) - len(main) <= KEPT_BACKFILLS
        assert len(str(state.to_dict())) < MOST_BYTES


def _place(position: Position | None) -> int:
    return -1 if position is None else number_of(position)
