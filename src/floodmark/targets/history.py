"""Versions of rows: each holds from where it began to where the next one begins.

The rows that a load brings are *events*: from there on, the key has these values, or is gone. What the table holds of
the same keys is taken apart into the events that made it, both are laid in order, and stretches in which nothing
changes become one version again. So it is the same in which order events arrive, and how often: an event that is late
lies between its neighbours, one that says nothing new makes no version, and one that is read again changes nothing.

A version keeps the row as it was read last, so its own cursor value says until when it is known to have held: an
event between the two was late, and the version goes on behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from floodmark.errors import ConfigError
from floodmark.model.names import DELETED, PROVENANCE, spark_name
from floodmark.model.outcome import Load
from floodmark.model.spec import PipelineSpec
from floodmark.model.target import HistorySpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TEXTS = ("string", "varchar", "char")
_AT, _GONE, _FRESH, _PLACE, _LAST, _NEW, _RUN, _BACK = (
    f"_floodmark_{name}" for name in ("at", "gone", "fresh", "place", "last", "new", "run", "back")
)


def as_versions(batch: DataFrame, load: Load, spec: PipelineSpec) -> DataFrame:
    """Each row as if it were the only version of its key."""
    from pyspark.sql import functions as F

    names = spec.target.history
    taken = {name.casefold() for name in batch.columns} & {name.casefold() for name in names.names}
    if taken:
        raise ConfigError(
            f"the rows have a column {min(taken)} of their own",
            column=min(taken),
            declared_at=spec.at("target.history"),
            hint="choose another name: `target: {history: {valid_from: …, valid_to: …, is_current: …}}`",
        )
    if load.cursor and batch.schema[load.cursor[0]].dataType.typeName() in TEXTS:
        raise ConfigError(
            f'the cursor "{load.cursor[0]}" is text, whose order only the source knows: it can\'t place versions',
            column=load.cursor[0],
            declared_at=spec.at("change"),
        )
    # The whole table, read without a cursor: what it says holds from now on.
    begins = F.lit(load.head.at) if not load.cursor else F.col(spark_name(load.cursor[0]))
    if load.cursor and load.fallback is not None:
        begins = F.coalesce(begins, F.col(spark_name(load.fallback)))
    batch = batch.withColumn(names.valid_from, begins)
    never = F.lit(None).cast(batch.schema[names.valid_from].dataType)
    return batch.withColumns({names.valid_to: never, names.is_current: F.lit(True)})


@dataclass(frozen=True)
class Timeline:
    """The SELECT that makes versions from events, in words that Spark and databases share."""

    quote: Callable[[str], str]
    distinct: str
    """Of two expressions: that they differ, NULL being a value like any other."""
    names: HistorySpec
    columns: Sequence[str]
    """Of the rows, keys and cursor among them, but none of the history's own."""
    load: Load
    now: str
    """When the whole table was read, as SQL; it is in the SELECT at most once."""
    is_comparable: bool = True
    """Else each event makes a version."""
    has_deletes: bool = False

    def versions(self, batch: str, kept: str | None = None) -> str:
        """`batch` holds events as versions of their own. `kept` are the versions in the table of all keys that it is
        about; after a read of the whole table, of all keys."""
        events = [self._fresh(batch)]
        head = "WITH "
        if kept is not None:
            head += f"floodmark_kept AS (SELECT * FROM {kept} AS k), "
            events += [self._begun(), self._gone_by_then()]
            events += [self._seen_again()] if self.load.cursor else [self._missing(batch)]
        steps = {
            "floodmark_events": " UNION ALL ".join(events),
            "floodmark_placed": self._placed(),
            "floodmark_ordered": self._ordered(),
            "floodmark_changes": self._changes(),
            "floodmark_runs": self._runs(),
            "floodmark_versions": self._versions(),
        }
        ctes = ", ".join(f"{name} AS ({text})" for name, text in steps.items())
        vf, vt, current = map(self.quote, self.names.names)
        still = f"{vf}, {vt}, ({vt} IS NULL) AS {current}"
        return f"{head}{ctes} SELECT {self._columns}, {still} FROM floodmark_versions WHERE {_GONE} = 0"

    # -- events ---------------------------------------------------------------------------------------------------

    def _event(self, at: str, *, gone: str, fresh: int) -> str:
        return f"SELECT {self._columns}, {at} AS {_AT}, {gone} AS {_GONE}, {fresh} AS {_FRESH}"

    def _fresh(self, batch: str) -> str:
        gone = f"CASE WHEN {self.quote(DELETED)} THEN 1 ELSE 0 END" if self.has_deletes else "0"
        return f"{self._event(self.quote(self.names.valid_from), gone=gone, fresh=1)} FROM {batch}"

    def _begun(self) -> str:
        return f"{self._event(self.quote(self.names.valid_from), gone='0', fresh=0)} FROM floodmark_kept"

    def _seen_again(self) -> str:
        seen = self.quote(self.load.cursor[0])
        if self.load.fallback is not None:
            seen = f"coalesce({seen}, {self.quote(self.load.fallback)})"
        return (
            f"{self._event(seen, gone='0', fresh=0)} FROM floodmark_kept WHERE {seen} > "
            f"{self.quote(self.names.valid_from)}"
        )

    def _gone_by_then(self) -> str:
        """A version that ends where no other begins was deleted."""
        vf, vt = self.quote(self.names.valid_from), self.quote(self.names.valid_to)
        next_one = f"{self._same('n', 'floodmark_kept')} AND n.{vf} = floodmark_kept.{vt}"
        return (
            f"{self._event(vt, gone='1', fresh=0)} FROM floodmark_kept WHERE {vt} IS NOT NULL "
            f"AND NOT EXISTS (SELECT 1 FROM floodmark_kept AS n WHERE {next_one})"
        )

    def _missing(self, batch: str) -> str:
        """From a read of the whole table: who is not in it is gone."""
        holds = f"{self.quote(self.names.valid_to)} IS NULL"
        return (
            f"{self._event(self.now, gone='1', fresh=1)} FROM floodmark_kept WHERE {holds} "
            f"AND NOT EXISTS (SELECT 1 FROM {batch} AS b WHERE {self._same('b', 'floodmark_kept')})"
        )

    # -- in order -------------------------------------------------------------------------------------------------

    def _placed(self) -> str:
        """Of two events at one moment the later read counts."""
        place = f"row_number() OVER (PARTITION BY {self._keys}, {_AT} ORDER BY {_FRESH} DESC, {_GONE})"
        last = f"max(CASE WHEN {_FRESH} = 1 THEN {_AT} END) OVER (PARTITION BY {self._keys})"
        return f"SELECT e.*, {place} AS {_PLACE}, {last} AS {_LAST} FROM floodmark_events AS e"

    def _ordered(self) -> str:
        """Above the mark the source has the last word: what it no longer says was never so."""
        lags = [f"lag({_GONE}) OVER ({self._in_order}) AS {_was(_GONE)}"]
        lags += [
            f"lag({self.quote(n)}) OVER ({self._in_order}) AS {_was(str(i))}" for i, n in enumerate(self._compared)
        ]
        last_word = f" AND ({_FRESH} = 1 OR {_AT} <= {_LAST})" if self.load.later_wins else ""
        return f"SELECT p.*, {', '.join(lags)} FROM floodmark_placed AS p WHERE {_PLACE} = 1{last_word}"

    def _changes(self) -> str:
        apart = [self.distinct.format(self.quote(n), _was(str(i))) for i, n in enumerate(self._compared)]
        differs = f"({' OR '.join(apart)})" if apart else "1 = 0"
        content = f"WHEN {_GONE} = 0 AND {differs if self.is_comparable else '1 = 1'} THEN 1 "
        new = f"CASE WHEN {_was(_GONE)} IS NULL THEN 1 WHEN {_GONE} <> {_was(_GONE)} THEN 1 {content}ELSE 0 END"
        return f"SELECT o.*, {new} AS {_NEW} FROM floodmark_ordered AS o"

    def _runs(self) -> str:
        run = f"sum({_NEW}) OVER ({self._in_order} ROWS UNBOUNDED PRECEDING)"
        return f"SELECT c.*, {run} AS {_RUN} FROM floodmark_changes AS c"

    def _versions(self) -> str:
        """The last row of each run, from where the run began to where the next one begins."""
        same = f"PARTITION BY {self._keys}, {_RUN}"
        begins = f"min({_AT}) OVER ({same}) AS {self.quote(self.names.valid_from)}"
        back = f"row_number() OVER ({same} ORDER BY {_AT} DESC) AS {_BACK}"
        rows = f"SELECT {self._columns}, {_GONE}, {begins}, {back} FROM floodmark_runs"
        vf = self.quote(self.names.valid_from)
        ends = f"lead({vf}) OVER (PARTITION BY {self._keys} ORDER BY {vf}) AS {self.quote(self.names.valid_to)}"
        return f"SELECT r.*, {ends} FROM ({rows}) AS r WHERE {_BACK} = 1"

    # -- names ----------------------------------------------------------------------------------------------------

    @property
    def _keys(self) -> str:
        return ", ".join(map(self.quote, self.load.keys))

    @property
    def _columns(self) -> str:
        return ", ".join(map(self.quote, self.columns))

    @property
    def _in_order(self) -> str:
        return f"PARTITION BY {self._keys} ORDER BY {_AT}"

    @property
    def _compared(self) -> list[str]:
        """What makes a version where it differs."""
        apart = (*self.load.keys, *self.load.cursor, *PROVENANCE)
        return [name for name in self.columns if name not in apart] if self.is_comparable else []

    def _same(self, one: str, other: str) -> str:
        return " AND ".join(f"{one}.{self.quote(k)} = {other}.{self.quote(k)}" for k in self.load.keys)


def _was(name: str) -> str:
    return f"_floodmark_was_{name.removeprefix('_floodmark_')}"
