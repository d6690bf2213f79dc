"""Care of an Iceberg table: small files made into large ones, snapshots expired, files removed that no snapshot knows.

When each was last done is a property of the table, so that all who load into it agree. Heads are properties as well
(`snapshots.py`), and are written anew before anything expires: what they stood in may be gone afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING

from floodmark.model.care import Care, CareDone, Condition
from floodmark.model.names import spark_name
from floodmark.targets.iceberg.snapshots import HEAD, IcebergLog, Snapshot
from floodmark.targets.iceberg.sql import OURS, set_property
from floodmark.targets.lake_sql import text_literal
from floodmark.targets.small_files import LARGE, SMALL

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

NOTES = {"compact": "floodmark.compacted-at", "vacuum": "floodmark.vacuumed-at"}
WEEK = timedelta(days=7)
ORPHANED = timedelta(days=3)
"""Files that no snapshot knows may be those of a load that is at work; Iceberg's own bound."""
ALWAYS_KEPT = timedelta(days=36500)
"""Each load keeps its head itself: no run has to be made for it."""

DATA = {
    "target-file-size-bytes": str(LARGE),
    "min-file-size-bytes": str(SMALL),
    "max-file-size-bytes": str(2 * LARGE),
    # A file that this many others mark rows of is read slowly.
    "delete-file-threshold": "10",
}


def condition(log: IcebergLog) -> Condition:
    return Condition(
        made_at=log.first_at,
        compacted_at=_noted(log, "compact"),
        vacuumed_at=_noted(log, "vacuum"),
        keep_within=ALWAYS_KEPT,
        is_ours=OURS in log.properties,
    )


def small_files(log: IcebergLog) -> int:
    """About: by what each commit since the last compaction says of the files that it added."""
    if log.main is None or log.main not in log.snapshots:
        return 0
    tip = log.snapshots[log.main]
    later = takewhile(lambda snapshot: snapshot.summary.get("operation") != "replace", log.ancestors(log.main))
    small = sum(snapshot.count("added-data-files") for snapshot in later if _is_small(snapshot))
    return max(0, min(small, tip.count("total-data-files")) - 1) + tip.count("total-delete-files")


def _is_small(snapshot: Snapshot) -> bool:
    return snapshot.count("added-files-size") < SMALL * snapshot.count("added-data-files")


@dataclass(frozen=True)
class Caring:
    """`table` is its name in the catalog, `sql` all of it as SQL has it."""

    spark: SparkSession
    catalog: str
    table: tuple[str, ...]
    sql: str
    keep: timedelta | None

    def take(self, log: IcebergLog, wanted: Care) -> CareDone:
        if wanted.step == "keep":
            return CareDone()
        done = self._compact() if wanted.step == "compact" else self._vacuum(log, wanted.at)
        self.spark.sql(set_property(self.sql, NOTES[wanted.step], wanted.at.astimezone(UTC).isoformat())).collect()
        return done

    def _compact(self) -> CareDone:
        data = self._call("rewrite_data_files", options=_map(DATA))
        marks = self._call("rewrite_position_delete_files")
        return CareDone(
            data["rewritten_data_files_count"] + marks["rewritten_delete_files_count"],
            data["added_data_files_count"] + marks["added_delete_files_count"],
        )

    def _vacuum(self, log: IcebergLog, now: datetime) -> CareDone:
        self._keep_heads(log)
        keep = WEEK if self.keep is None else self.keep
        expired = self._call("expire_snapshots", older_than=_moment(now - keep), retain_last="1")
        self._call("remove_orphan_files", older_than=_moment(now - max(keep, ORPHANED)))
        removed = sum(expired[f"deleted_{kind}_files_count"] for kind in ("data", "position_delete", "equality_delete"))
        return CareDone(removed=removed)

    def _keep_heads(self, log: IcebergLog) -> None:
        """Of every pipeline that loads into the table, as main knows them now."""
        if log.main is None:
            return
        tip = log.snapshots[log.main]
        for pipeline, kept in log.kept_heads().items():
            landed = log.landed(pipeline, 1)
            if landed and landed[0].head == kept.head:
                now = replace(kept, snapshot=tip.id, sequence=tip.sequence, live=tip.live)
                self.spark.sql(set_property(self.sql, f"{HEAD}.{pipeline}", now.written())).collect()

    def _call(self, procedure: str, **arguments: str) -> Row:
        table = text_literal(".".join(map(spark_name, self.table)))
        given = "".join(f", {name} => {value}" for name, value in arguments.items())
        rows = self.spark.sql(f"CALL {spark_name(self.catalog)}.system.{procedure}(table => {table}{given})").collect()
        return rows[0] if rows else {}  # type: ignore[return-value]


def _noted(log: IcebergLog, step: str) -> datetime | None:
    try:
        return datetime.fromisoformat(log.properties[NOTES[step]])
    except (KeyError, ValueError):
        return None


def _moment(at: datetime) -> str:
    return f"TIMESTAMP '{at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}Z'"


def _map(options: dict[str, str]) -> str:
    return f"map({', '.join(f'{text_literal(k)}, {text_literal(v)}' for k, v in options.items())})"
