"""What every target must do. Inherit `TargetContract` and override `world`:

    class TestMyTarget(TargetContract):
        @pytest.fixture
        def world(self, tmp_path):
            return World(open=..., read=...)

It works on the port alone: batches come from Spark as the engine shapes them, one row for each key, none of them NULL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from floodmark.errors import ConfigError, TargetError
from floodmark.model.ledger import Intent
from floodmark.model.names import DELETED
from floodmark.model.outcome import Head, Landed, Load, Rows
from floodmark.model.position import Position
from floodmark.model.spec import PipelineSpec
from floodmark.ports import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
COLUMNS = "id bigint, val string, seq bigint"
WHOLE = ("replace", "replace_partitions")
ODD = ["with space", 'say "so"', "a.b", "Größe", "select", "it's", "%s", "back`tick"]


@dataclass(frozen=True)
class World:
    open: Callable[[PipelineSpec], Target]
    read: Callable[[str, Sequence[str]], list[tuple[Any, ...]]]
    """All rows of a table, by these columns."""
    drop: Callable[[str], None]
    lowest: float = -math.inf
    """That a double can be there."""


def a_spec(mode: str, table: str = "orders", *, by: str = "sequence", **target: Any) -> PipelineSpec:
    keys = {"keys": ("id",)} if mode in ("upsert", "history") else {}
    change = {"by": "none"} if mode in WHOLE or by == "none" else {"by": by, "column": "seq"}
    declared = {"connection": "lake", "table": table, "mode": mode, **keys, **target}
    return PipelineSpec(name="orders", source={"connection": "shop", "table": "orders"}, change=change, target=declared)  # type: ignore[arg-type]


def a_load(spec: PipelineSpec, ordinal: int, **asked: Any) -> Load:
    """`asked` are fields of the intent or of the load."""
    own = {name: asked.pop(name) for name in ("later_wins", "only_new", "rows", "fallback") if name in asked}
    at = asked.pop("at", AT)
    intent = Intent(
        batch=asked.pop("batch", f"b{ordinal}"),
        ordinal=ordinal,
        after=asked.pop("after", None),
        until=asked.pop("until", None),
        mark=None,
        **asked,
    )
    head = Head(
        pipeline=spec.name,
        lane=intent.lane,
        ordinal=ordinal,
        batch=intent.batch,
        start=None,
        after=intent.after,
        until=intent.until,
        mark=intent.mark,
        full=intent.full,
        epoch=1,
        run="r",
        at=at,
    )
    cursor = () if spec.change.by == "none" else ("seq",)
    return Load(intent, head, spec.target.mode, spec.target.keys, cursor, **own)


class Loading:
    """A target, and one batch after the other into it."""

    def __init__(self, world: World, spark: SparkSession, spec: PipelineSpec) -> None:
        self.world, self.spark, self.spec = world, spark, spec
        self.target = world.open(spec)
        self.ordinal = 0

    def load(self, values: list[tuple[Any, ...]], columns: str = COLUMNS, /, **asked: Any) -> Landed:
        landed = self.attempt(self.spark.createDataFrame(values, columns), **asked)
        assert landed is not None
        return landed

    def attempt(self, frame: DataFrame, /, **asked: Any) -> Landed | None:
        self.ordinal = asked.pop("ordinal", self.ordinal + 1)
        asked.setdefault("rows", 10)
        return self.target.load(self.spark, frame, a_load(self.spec, self.ordinal, **asked))

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        return sorted(self.world.read(self.spec.target.table, columns or ("id", "val", "seq")))


class TargetContract:
    @pytest.fixture
    def world(self) -> World:
        raise NotImplementedError

    @pytest.fixture
    def begin(self, world: World, spark: SparkSession) -> Callable[[PipelineSpec], Loading]:
        return lambda spec: Loading(world, spark, spec)

    def test_a_batch_lands_with_its_head(self, begin: Callable[[PipelineSpec], Loading]) -> None:
        orders = begin(a_spec("append"))
        assert not orders.target.inspect().exists
        assert orders.target.find("b1") is None
        landed = orders.load([(1, "a", 1), (2, "b", 2)])
        assert landed.rows.inserted == 2
        found = orders.target.find("b1")
        assert found is not None
        assert found.head == landed.head
        state = orders.target.inspect()
        assert (state.exists, state.has_rows, state.top_ordinal, state.wiped_by) == (True, True, 1, None)
        assert (state.table_id, state.version) == (landed.table_id, landed.version)
        assert [c.head.batch for c in state.landed] == ["b1"]
        orders.load([(3, "c", 3)])
        assert [c.head.batch for c in orders.target.inspect(deep=True).landed] == ["b2", "b1"]
        assert orders.rows() == [(1, "a", 1), (2, "b", 2), (3, "c", 3)]

    @pytest.mark.parametrize("mode", ["append", "upsert"])
    def test_an_ordinal_is_taken_once(self, begin: Callable[[PipelineSpec], Loading], mode: str) -> None:
        orders = begin(a_spec(mode))
        orders.load([(1, "a", 1)])
        again = orders.spark.createDataFrame([(1, "other", 2), (2, "b", 2)], COLUMNS)
        assert orders.attempt(again, ordinal=1, batch="another") is None
        assert orders.rows() == [(1, "a", 1)]
        assert orders.target.find("another") is None

    def test_an_upsert(self, begin: Callable[[PipelineSpec], Loading]) -> None:
        orders = begin(a_spec("upsert"))
        orders.load([(i, "old", 5) for i in range(1, 6)])
        landed = orders.load([(1, "newer", 6), (2, "changed", 5), (3, "old", 5), (4, "older", 4), (6, "new", 1)])
        assert (landed.rows.inserted, landed.rows.updated, landed.rows.deleted) == (1, 2, 0)
        assert [(i, v) for i, v, _ in orders.rows()] == [
            (1, "newer"),
            (2, "changed"),
            (3, "old"),
            (4, "old"),
            (5, "old"),
            (6, "new"),
        ]
        assert orders.load([(4, "the source's last word", 4)], later_wins=True).rows.updated == 1

    def test_an_upsert_where_the_cursor_is_missing(self, begin: Callable[[PipelineSpec], Loading]) -> None:
        orders = begin(a_spec("upsert"))
        orders.load([(1, "old", None), (2, "old", 5), (3, "old", None)])
        orders.load([(1, "first known", 1), (2, "none any more", None), (3, "changed", None)])
        assert [v for _, v, _ in orders.rows("id", "val", "id")] == ["first known", "none any more", "changed"]

    def test_an_upsert_by_two_columns(self, begin: Callable[[PipelineSpec], Loading]) -> None:
        orders = begin(a_spec("upsert", keys=("id", "val")))
        orders.load([(1, "a", 1), (1, "b", 1)])
        landed = orders.load([(1, "b", 2), (1, "c", 2)])
        assert (landed.rows.inserted, landed.rows.updated) == (1, 1)
        assert orders.rows() == [(1, "a", 1), (1, "b", 2), (1, "c", 2)]

    def test_rows_that_are_new_by_their_keys_alone(self, begin: Callable[[PipelineSpec], Loading]) -> None:
        orders = begin(a_spec("append", keys=("id",)))
        orders.load([(1, "a", 1)])
        assert orders.load([(1, "again", 2), (2, "b", 2)], only_new=True).rows.inserted == 1
        assert orders.rows() == [(1, "a", 1), (2, "b", 2)]

    def test_deletes_in_the_batch(self, begin: Callable[[PipelineSpec], Loading]) -> None:
        orders = begin(a_spec("upsert"))
        marked = f"{COLUMNS}, {DELETED} boolean"
        orders.load([(i, "old", 5, None) for i in range(1, 6)], marked)
        gone = [(1, "x", 6, True), (2, "x", 5, True), (3, "x", 4, True), (9, "x", 9, True)]
        landed = orders.load([*gone, (4, "new", 6, False), (6, "new", 6, None)], marked)
        assert (landed.rows.inserted, landed.rows.updated, landed.rows.deleted) == (1, 1, 2)
        assert [(i, v) for i, v, _ in orders.rows()] == [(3, "old"), (4, "new"), (5, "old"), (6, "new")]
        orders.load([(3, "x", 4, True)], marked, later_wins=True)
        assert [i for i, _, _ in orders.rows()] == [4, 5, 6]
        with pytest.raises(ConfigError, match="no keys to find them by"):
            begin(a_spec("append", "appended")).load([(1, "a", 1, True)], marked)

    @pytest.mark.parametrize("mode", ["append", "upsert", "replace"])
    def test_a_load_that_replaces_everything(self, begin: Callable[[PipelineSpec], Loading], mode: str) -> None:
        orders = begin(a_spec(mode))
        orders.load([(1, "a", 1), (2, "b", 2)], full=True)
        orders.load([(2, "other", 1), (3, "c", 1)], full=True)
        assert orders.rows() == [(2, "other", 1), (3, "c", 1)]
        orders.load([], full=True)
        assert orders.rows() == []
        assert orders.target.inspect().wiped_by is None

    @pytest.mark.parametrize("mode", ["append", "replace_range"])
    def test_a_range_is_replaced(self, begin: Callable[[PipelineSpec], Loading], mode: str) -> None:
        orders = begin(a_spec(mode))
        orders.load([(i, "old", i) for i in range(1, 6)])
        orders.load([(2, "new", 2), (9, "new", 3)], replaces=True, after=Position.before(2), until=Position.before(4))
        assert orders.rows() == [(1, "old", 1), (2, "new", 2), (4, "old", 4), (5, "old", 5), (9, "new", 3)]
        beyond = orders.load([(6, "new", 6)], replaces=True, after=Position.before(6), until=Position.before(7))
        assert (beyond.rows.inserted, len(orders.rows())) == (1, 6)
        orders.load([(7, "all", 2)], replaces=True, until=Position.before(7))
        assert orders.rows() == [(7, "all", 2)]

    def test_a_new_a_wider_and_a_missing_column(self, begin: Callable[[PipelineSpec], Loading]) -> None:
        orders = begin(a_spec("upsert"))
        orders.load([(1, "a", 1, 7), (2, "b", 1, 8)], "id bigint, val string, seq bigint, n int")
        landed = orders.load([(1, "a", 2, 2**40, 0.5)], "id bigint, val string, seq bigint, n bigint, more double")
        assert any("more is new" in said for said in landed.notices)
        assert orders.rows("id", "n", "more") == [(1, 2**40, 0.5), (2, 8, None)]
        orders.load([(2, 3), (3, 3)], "id bigint, seq bigint")
        assert orders.rows("id", "val", "n") == [(1, "a", 2**40), (2, "b", 8), (3, None, None)]

    def test_the_policies_that_keep_the_table_as_it_is(self, begin: Callable[[PipelineSpec], Loading]) -> None:
        frozen = begin(a_spec("append", "frozen", schema_changes="freeze"))
        frozen.load([(1, "a", 1)])
        with pytest.raises(TargetError, match="more is new"):
            frozen.load([(2, "b", 2, 1)], f"{COLUMNS}, more int")
        kept = begin(a_spec("append", "kept", schema_changes="discard"))
        kept.load([(1, "a", 1)])
        kept.load([(2, "b", 2, 1)], f"{COLUMNS}, more int")
        assert kept.rows() == [(1, "a", 1), (2, "b", 2)]

    def test_a_column_that_was_renamed(self, begin: Callable[[PipelineSpec], Loading]) -> None:
        orders = begin(a_spec("upsert", renames={"val": "value"}))
        orders.load([(1, "a", 1), (2, "b", 1)])
        orders.load([(1, "c", 2)], "id bigint, value string, seq bigint")
        assert orders.rows("id", "value") == [(1, "c"), (2, "b")]

    def test_odd_names(self, begin: Callable[[PipelineSpec], Loading]) -> None:
        names = ["id", "seq", *ODD]
        orders = begin(a_spec("upsert", keys=("id", ODD[1])))
        columns = ", ".join(f"`{n.replace('`', '``')}` bigint" for n in names)
        orders.load([(1, 1, *range(len(ODD)))], columns)
        orders.load([(1, 2, *range(len(ODD))), (2, 2, *range(len(ODD)))], columns)
        assert orders.rows(*names) == [(1, 2, *range(len(ODD))), (2, 2, *range(len(ODD)))]

    def test_values_arrive_as_they_are(self, begin: Callable[[PipelineSpec], Loading], world: World) -> None:
        columns = {
            "id": ("bigint", [-(2**63), 2**63 - 1, 0]),
            "seq": ("bigint", [1, 1, 1]),
            "n": ("decimal(38,10)", [Decimal("9" * 28 + "." + "9" * 10), Decimal("-0.0000000001"), None]),
            "at": ("timestamp", [datetime(1850, 1, 1, 0, 0, 0, 1, tzinfo=UTC), AT, None]),
            "wall": ("timestamp_ntz", [datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1, 1, 1), None]),
            "day": ("date", [date(1, 1, 1), date(9999, 12, 31), None]),
            "yes": ("boolean", [True, False, None]),
            "text": ("string", ["", "a,\"b\"\n'c'\\.\t\r", "straße \U0001f30a"]),
            "bytes": ("binary", [b"", b"\x00\xff\\x", None]),
            "small": ("smallint", [-32768, 32767, None]),
            "real": ("double", [0.1, world.lowest, None]),
        }
        orders = begin(a_spec("upsert"))
        kinds = ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items())
        rows = list(zip(*(values for _, values in columns.values()), strict=True))
        orders.load(rows, kinds)
        orders.load([(row[0], 2, *row[2:]) for row in rows], kinds)
        expected = sorted([(row[0], 2, *row[2:]) for row in rows])
        assert orders.rows(*columns) == expected

    def test_a_table_that_was_made_again_is_another_one(
        self, begin: Callable[[PipelineSpec], Loading], world: World
    ) -> None:
        orders = begin(a_spec("append"))
        first = orders.load([(1, "a", 1)])
        world.drop("orders")
        assert not orders.target.inspect().exists
        assert orders.target.find("b1") is None
        assert orders.load([(1, "a", 1)]).table_id != first.table_id
        assert [landed.head.batch for landed in orders.target.inspect(deep=True).landed] == ["b2"]

    def test_counts_that_nobody_asked_for_twice(self, begin: Callable[[PipelineSpec], Loading]) -> None:
        orders = begin(a_spec("upsert"))
        orders.load([(1, "a", 1)])
        assert orders.load([(1, "a", 1)]).rows == Rows(1, 0, 0, 0)
        assert orders.load([(1, "b", 2)], rows=None).rows == Rows(1, 0, 1, 0)


class PartitionsContract:
    """For targets that have mode replace_partitions; beside TargetContract, whose fixtures it uses."""

    def test_the_partitions_in_the_batch_are_replaced(self, begin: Callable[[PipelineSpec], Loading]) -> None:
        orders = begin(a_spec("replace_partitions", partition_by=("val",)))
        orders.load([(1, "a", 1), (2, "a", 1), (3, "b", 1), (4, "c", 1)])
        orders.load([(5, "a", 2), (6, "d", 2)])
        assert orders.rows() == [(3, "b", 1), (4, "c", 1), (5, "a", 2), (6, "d", 2)]
        assert orders.target.inspect().wiped_by is None
        orders.load([(7, None, 3)])
        orders.load([(8, None, 4)])
        assert sorted(orders.world.read("orders", ("id", "seq"))) == [(3, 1), (4, 1), (5, 2), (6, 2), (8, 4)]

    def test_a_table_with_other_partitions_is_refused(self, begin: Callable[[PipelineSpec], Loading]) -> None:
        begin(a_spec("append")).load([(1, "a", 1)])
        with pytest.raises(TargetError, match="partition"):
            begin(a_spec("replace_partitions", partition_by=("val",))).load([(2, "a", 1)], ordinal=2)
