"""What a user declares, checked and frozen. The JSON Schema and the option docs come from these same classes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from floodmark.errors import Place
from floodmark.model.duration import Duration
from floodmark.model.options import Options
from floodmark.model.rules import ColumnRule
from floodmark.model.target import TargetSpec


class ConnectionOptions(Options):
    """What every connection has; each source and target adds its own beside its component."""

    type: str = Field(description="Which kind of source or target this is.")

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must never be shown."""
        return ()

    @property
    def java(self) -> tuple[str, ...]:
        """What Spark needs on its class path: libraries known by name, Maven coordinates, or paths of jars."""
        return (self.type,)


class SourceSpec(Options):
    connection: str = Field(description="Name of a connection.")
    table: str | None = Field(
        default=None, description="Table or view to read, with its schema where the database has schemas."
    )
    query: str | None = Field(default=None, min_length=1, description="A SELECT to read instead of a table.")
    tables: str | None = Field(
        default=None, description="A pattern such as `public.*`: one pipeline for each table that it matches."
    )
    exclude: tuple[str, ...] = Field(default=(), description="Tables or patterns that `tables` leaves out.")
    partitions: int | None = Field(
        default=None, ge=1, le=1000, description="Parallel readers. Chosen by the size of the read when unset."
    )
    fetch_size: int = Field(default=10_000, ge=1, description="Rows per round trip to the database.")

    @model_validator(mode="after")
    def _one_of_them(self) -> SourceSpec:
        given = [name for name in ("table", "query", "tables") if getattr(self, name) is not None]
        if not given:
            about = "The table to read, or instead of it a `query`, or a pattern of `tables`."
            raise PydanticCustomError("missing", "no table", {"option": "table", "about": about})
        if len(given) > 1:
            raise ValueError(f"set one of `table`, `query` and `tables`, not {' and '.join(given)}")
        if self.exclude and self.tables is None:
            raise ValueError("`exclude` goes with `tables`")
        return self

    @property
    def identity(self) -> str:
        """A query by its text, so that another one is refused under the same state; its layout does not count."""
        if self.query is None:
            return self.table or self.tables or ""
        text = re.sub(r"('[^']*'|\"[^\"]*\")|\s+", lambda m: m[1] or " ", self.query.strip().rstrip(";").rstrip())
        return f"query {sha256(text.encode()).hexdigest()[:16]}"


class CoalesceSpec(Options):
    coalesce: str = Field(description="The column that stands in where the cursor is NULL.")


class CursorOptions(Options):
    column: str | None = Field(default=None, description="The cursor column.")
    columns: tuple[str, ...] = Field(
        default=(), description="A composite cursor, most significant first; cuts inside one timestamp."
    )
    nulls: Literal["fail", "include", "skip"] | CoalesceSpec = Field(
        default="fail",
        description="Rows whose cursor is NULL: fail with their count, load them, too, leave them out (counted), "
        "or take another column's value: `{coalesce: created_at}`.",
    )
    nulls_every: Duration = Field(
        default=timedelta(hours=1),
        description="How often a run that finds nothing new counts NULLs without an index to find them by.",
    )
    start: int | datetime | str | None = Field(
        default=None, description="Where the first run starts. Everything when unset."
    )
    delay: Duration = Field(
        default=timedelta(minutes=5),
        description="How long a value must have been there before it counts as final, where the source can't prove it.",
    )
    wait: Duration = Field(
        default=timedelta(seconds=2),
        description="How long a run waits for open transactions that may still write below the mark.",
    )
    backwards: Literal["refuse", "accept"] = Field(
        default="refuse",
        description="When the highest value lies below the mark: refuse, or take it that the newest rows were deleted.",
    )

    @model_validator(mode="after")
    def _one_cursor(self) -> CursorOptions:
        if bool(self.column) == bool(self.columns):
            raise ValueError("set either `column` or `columns`")
        return self

    @property
    def cursor_columns(self) -> tuple[str, ...]:
        return self.columns or (self.column or "",)


class TimestampSpec(CursorOptions):
    """Windows on a modified-at column."""

    by: Literal["timestamp"] = Field(description="Follow a modified-at column.")
    timezone: str | None = Field(default=None, description="Zone of a zone-less column, e.g. Europe/Berlin.")
    fence: Literal["auto", "off"] = Field(
        default="auto",
        description="Look for open transactions before the mark moves, or trust the safety delay alone.",
    )
    lookback: Duration | None = Field(
        default=None, description="Read this much again on each run, for values that an application fills in late."
    )

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str | None) -> str | None:
        try:
            return None if name is None else ZoneInfo(name).key
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError(f"{name!r} is not a time zone: use a name such as Europe/Berlin or UTC") from None


class SequenceSpec(CursorOptions):
    """Windows on an id or version column."""

    by: Literal["sequence"] = Field(description="Follow an id or version that only grows.")
    fence: Literal["auto", "table", "transactions", "off"] = Field(
        default="auto",
        description="Whom to wait for before the mark moves: who has written to the table, where its values come from "
        "the column's default (auto) or surely later than the table's lock (table); every open transaction; nobody.",
    )
    lookback: int | None = Field(
        default=None, ge=1, description="Read this many values below the mark again on each run."
    )


class FullSpec(Options):
    """No windows: the whole table each time."""

    by: Literal["none"] = Field(description="Read the whole table on each run.")


ChangeSpec = Annotated[TimestampSpec | SequenceSpec | FullSpec, Field(discriminator="by")]


class TransformSpec(Options):
    sql: str | None = Field(default=None, description="A SELECT over `source`.")
    python: str | None = Field(default=None, description="`module:function` that takes and returns a DataFrame.")

    @model_validator(mode="after")
    def _one_transform(self) -> TransformSpec:
        if bool(self.sql) == bool(self.python):
            raise ValueError("set either `sql` or `python`")
        return self


class RetrySpec(Options):
    """What to do when something fails that may well succeed a moment later."""

    attempts: int = Field(default=5, ge=1, le=100, description="Tries in all; 1 never tries again.")
    wait: Duration = Field(default=timedelta(seconds=1), description="About how long to wait at first; doubles.")
    longest_wait: Duration = Field(default=timedelta(seconds=30), description="The wait grows no longer than this.")


Switch = Literal["auto", "on", "off"]


class SparkSpec(Options):
    master: str | None = Field(default=None, description="Spark master. Local with all cores when unset.")
    remote: str | None = Field(default=None, description="Spark Connect address, e.g. sc://host:15002.")
    config: dict[str, str | int | float | bool] = Field(
        default_factory=dict, description="Any Spark setting; wins over Floodmark's own."
    )
    resident: Switch = Field(
        default="auto",
        description="Leave a warm Spark behind for the next `floodmark run`; `auto` does on a machine that stays, and "
        "not in CI or in a container. Local Spark only.",
    )
    idle: Duration = Field(default=timedelta(minutes=15), description="When a resident Spark that nobody uses ends.")
    archive: Switch = Field(
        default="auto",
        description="Keep Spark's loaded classes in the cache (200 MB), for a quicker start; `auto` as for `resident`.",
    )


class PipelineSpec(Options):
    name: str
    source: SourceSpec = Field(description="Where the rows come from.")
    change: ChangeSpec = Field(description="How changes are found.")
    target: TargetSpec = Field(description="Where the rows land.")
    select: tuple[str, ...] = Field(default=(), description="The source's columns to load; all when unset.")
    columns: Mapping[str, Literal["drop"] | ColumnRule] = Field(
        default_factory=dict, description="Rules by source column, applied before anything else sees the rows."
    )
    transform: TransformSpec | None = Field(default=None, description="SQL or Python on the batch.")
    batch_rows: int = Field(
        default=500_000, ge=1, description="Rows per slice, each its own commit; ties are never cut apart."
    )
    retries: RetrySpec = Field(
        default=RetrySpec(), description="Connections that were cut, deadlocks, time-outs, concurrent commits."
    )
    places: Mapping[str, Place] = Field(default_factory=dict, exclude=True, repr=False)
    """Where each option was declared, by its dotted path below the pipeline."""

    @field_validator("target")
    @classmethod
    def _keys_fit_mode(cls, target: TargetSpec, info: ValidationInfo) -> TargetSpec:
        source = info.data.get("source")
        many = isinstance(source, SourceSpec) and source.tables is not None
        if target.matches_keys and not target.keys and not many:
            raise ValueError(f"mode {target.mode} needs `keys`: the columns that identify a row")
        if many and "{table}" not in target.table:
            raise ValueError("one pipeline for each of `tables` needs a target of its own: write `{table}` in its name")
        return target

    @model_validator(mode="after")
    def _mode_fits_change(self) -> PipelineSpec:
        full = isinstance(self.change, FullSpec)
        if self.includes_nulls and not self.target.keys and self.source.tables is None:
            raise ValueError(
                "`nulls: include` needs the target's `keys`: rows without a cursor value are found again by them"
            )
        mode = self.target.mode
        if full and mode == "append":
            raise ValueError(
                "`change: {by: none}` reads everything each time, so append would double it: "
                "use mode replace, or upsert with keys"
            )
        if full and mode == "replace_range":
            raise ValueError(
                "`change: {by: none}` has no range to replace: use mode replace or replace_partitions, "
                "or follow a timestamp or sequence"
            )
        if not full and mode == "replace":
            raise ValueError(
                "mode replace loads the whole table: use it with `change: {by: none}`, or choose append or upsert"
            )
        if not full and mode == "replace_partitions":
            raise ValueError(
                "mode replace_partitions replaces whole partitions, and a window of changes holds only some of their "
                "rows: use it with `change: {by: none}` and a `query` that reads whole partitions, or choose "
                "replace_range or upsert"
            )
        return self

    @model_validator(mode="after")
    def _new_columns_are_seen(self) -> PipelineSpec:
        if self.target.new_columns == "leave":
            return self
        if self.transform is not None:
            raise ValueError(
                "`new_columns: backfill` compares the source's columns with the table's, which a transform makes: "
                "leave it out, and run `floodmark backfill` when the transform has a new column"
            )
        if self.target.schema_changes != "evolve":
            raise ValueError("`new_columns: backfill` needs `schema_changes: evolve`: else no column is added")
        return self

    @model_validator(mode="after")
    def _history_has_an_order(self) -> PipelineSpec:
        if self.target.mode != "history" or isinstance(self.change, FullSpec):
            return self
        if len(self.change.cursor_columns) > 1:
            raise ValueError("mode history takes one cursor column: its value is where a version begins")
        if self.change.nulls == "include":
            raise ValueError(
                "mode history can't place rows without a cursor value: choose another of `nulls: fail | skip | "
                "{coalesce: COLUMN}`"
            )
        return self

    def at(self, path: str = "") -> Place | None:
        """The declaration of an option, or of the nearest thing around it."""
        while path and path not in self.places:
            path = path.rpartition(".")[0]
        return self.places.get(path)

    @property
    def includes_nulls(self) -> bool:
        return not isinstance(self.change, FullSpec) and self.change.nulls == "include"

    @property
    def identity(self) -> dict[str, Any]:
        """What may not change under an existing state, in a form that survives in ledger and head."""
        change: dict[str, Any] = {"by": self.change.by}
        if not isinstance(self.change, FullSpec):
            change["columns"] = list(self.change.cursor_columns)
        return {
            "source": self.source.identity,
            "change": change,
            "target": self.target.table,
            "mode": self.target.mode,
            "keys": list(self.target.keys),
        }


class ProjectSpec(Options):
    """A whole floodmark.yml. `root` is the folder that relative paths start from."""

    root: str
    connections: Mapping[str, ConnectionOptions] = Field(description="Databases and lakes, by name.")
    pipelines: Mapping[str, PipelineSpec] = Field(description="One per table, by name.")
    state: str | Mapping[str, Any] = Field(
        default="sqlite:///.floodmark/state.db", description="Where the ledger is kept: a URL, or a map."
    )
    spark: SparkSpec = Field(default=SparkSpec(), description="The Spark session.")
    lease_ttl: Duration = Field(
        default=timedelta(seconds=30),
        description="How long a runner's lease on a table must stand still before another one may take over.",
    )
    secrets: tuple[str, ...] = Field(default=(), exclude=True, repr=False)
    """Every value that came out of a variable with a secret's name, or out of a connection's password."""
