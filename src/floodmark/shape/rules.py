"""Column rules: applied to the batch as it is read, so that nothing behind them (transform, side outputs, target) ever
sees what they take away. Spark pushes the choice of columns down to the source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from floodmark.errors import ConfigError, Place
from floodmark.exact import changed
from floodmark.model.names import spark_name
from floodmark.model.rules import ColumnRule, MaskSpec
from floodmark.model.spec import PipelineSpec
from floodmark.model.table import Column, Cursor, TableInfo

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

HIDDEN = "***"


def landing_name(spec: PipelineSpec, name: str) -> str | None:
    """What a source column is called behind the rules; None when it is left out."""
    rule = spec.columns.get(name)
    if rule == "drop" or (spec.select and name not in spec.select):
        return None
    return rule.rename if isinstance(rule, ColumnRule) and rule.rename else name


def landing_table(spec: PipelineSpec, table: TableInfo) -> TableInfo:
    """The table as it is behind the rules. A primary key that lost a column is none."""
    names = {c.name: landing_name(spec, c.name) for c in table.columns}
    columns = tuple(replace(c, name=new) for c in table.columns if (new := names[c.name]) is not None)
    keys = tuple(new for key in table.primary_key if (new := names[key]) is not None)
    return TableInfo(table.name, columns, keys if len(keys) == len(table.primary_key) else ())


def landing_cursor(spec: PipelineSpec, cursor: Cursor | None) -> Cursor | None:
    """One whose column is left out keeps its name, and is then missing by that name."""
    if cursor is None:
        return None
    columns = tuple(replace(c, name=landing_name(spec, c.name) or c.name) for c in cursor.columns)
    other = cursor.fallback
    fallback = None if other is None else replace(other, name=landing_name(spec, other.name) or other.name)
    return replace(cursor, columns=columns, fallback=fallback)


def check_loaded(table: TableInfo, landing: TableInfo, names: Sequence[str], declared_at: Place | None) -> None:
    """That what the target needs of the source's columns is not kept back by the rules."""
    for name in names:
        if landing.column(name) is None and table.column(name) is not None:
            raise ConfigError(
                f'column "{name}" of {table.name} is not loaded: `select` or `columns` leaves it out or renames it',
                table=table.name,
                column=name,
                declared_at=declared_at,
                hint=f"columns to load: {', '.join(landing.names)}",
            )


def check_rules(spec: PipelineSpec, table: TableInfo, cursor: Cursor | None) -> None:
    """All that can be said against the rules before anything is read."""
    seen: dict[str, str] = {}
    for column in table.columns:
        landing = landing_name(spec, column.name)
        if landing is None:
            continue
        if landing.casefold() in seen:
            raise _refused(spec, column.name, f"two columns would be called {landing}: also {seen[landing.casefold()]}")
        seen[landing.casefold()] = column.name
    if spec.target.mode == "history" and spec.transform is None:
        _check_history(spec, seen)
    for name in () if cursor is None else cursor.names:
        if changed := _changes(spec, name):
            raise _refused(spec, name, f"the cursor decides which row wins, so it can't be changed by `{changed}`")
        if spec.target.matches_keys and spec.transform is None and landing_name(spec, name) is None:
            # A transform may bring it back; without one the first load would find out.
            raise _refused(spec, name, "the cursor decides which row wins, so it can't be left out")
    for name in spec.columns:
        changed = _changes(spec, name)
        if changed in ("mask", "cast") and landing_name(spec, name) in spec.target.keys:
            trouble = f"two keys may become one by `{changed}`, and a row would be lost"
            raise _refused(spec, name, trouble, hint="`hash` keeps keys apart")


def _check_history(spec: PipelineSpec, columns: Mapping[str, str]) -> None:
    """`columns` by the names that they land under."""
    for name in spec.target.history.names:
        if name.casefold() in columns:
            raise ConfigError(
                f'column "{columns[name.casefold()]}": the history keeps a column of this name itself',
                column=columns[name.casefold()],
                declared_at=spec.at("target.history"),
                hint="choose another name: `target: {history: {valid_from: …, valid_to: …, is_current: …}}`",
            )


def _changes(spec: PipelineSpec, name: str) -> str | None:
    rule = spec.columns.get(name)
    return rule.changes_values if isinstance(rule, ColumnRule) else None


def _refused(spec: PipelineSpec, column: str, trouble: str, hint: str | None = None) -> ConfigError:
    return ConfigError(
        f'column "{column}": {trouble}',
        column=column,
        declared_at=spec.at(f"columns.{column}" if column in spec.columns else "select"),
        hint=hint,
    )


def apply_rules(batch: DataFrame, spec: PipelineSpec, table: TableInfo) -> DataFrame:
    if not spec.columns and not spec.select:
        return batch
    return batch.select(*_landing(batch, spec, table.columns))


def _landing(batch: DataFrame, spec: PipelineSpec, columns: Sequence[Column]) -> list[SparkColumn]:
    found = []
    for column in columns:
        name = landing_name(spec, column.name)
        if name is not None:
            rule = spec.columns.get(column.name)
            value = batch[spark_name(column.name)]
            if isinstance(rule, ColumnRule):
                value = _value(batch, value, column, rule)
            found.append(value.alias(name))
    return found


def _value(batch: DataFrame, value: SparkColumn, column: Column, rule: ColumnRule) -> SparkColumn:
    from pyspark.sql import functions as F

    kind = batch.schema[column.name].dataType
    if rule.hash is not None:
        salt = "" if rule.salt is None else rule.salt.get_secret_value()
        # Bytes as they are, all else as Spark writes it: never through a character set.
        content = value if kind.typeName() == "binary" else value.cast("string").cast("binary")
        return F.sha2(F.concat(F.lit(salt).cast("binary"), content), int(rule.hash.removeprefix("sha")))
    if rule.mask is not None:
        return _masked(value.cast("string"), rule.mask)
    if rule.cast is None:
        return value
    wanted = batch.select(value.try_cast(rule.cast)).schema[0].dataType
    return _cast(value, column, kind, wanted)


def _cast(value: SparkColumn, column: Column, kind: DataType, wanted: DataType) -> SparkColumn:
    """A value that the type can't hold as it is fails the load; to round is for a transform, where it is said how."""
    from pyspark.sql import functions as F

    cast = value.try_cast(wanted)
    no = f", which is no {wanted.simpleString()}; to round or cut it, cast it in a `transform`"
    said = F.concat(F.lit(f'floodmark: column "{column.name}" holds '), value.cast("string"), F.lit(no))
    lost = changed(value, kind, cast, wanted, nearest=True)
    return F.when(lost, F.raise_error(said)).otherwise(cast)


def _masked(text: SparkColumn, mask: MaskSpec | str) -> SparkColumn:
    from pyspark.sql import functions as F

    hidden = F.when(text.isNotNull(), F.lit(HIDDEN))
    if not isinstance(mask, MaskSpec):
        return hidden
    first, last = mask.keep_first, mask.keep_last
    parts = F.concat(F.substring(text, 1, first), F.lit(HIDDEN), F.right(text, F.lit(last)))
    return F.when(F.length(text) > first + last, parts).otherwise(hidden)
