"""Which columns a Delta table can have, and how types are written in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from floodmark.errors import TargetError
from floodmark.model.names import spark_name, twins

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

NO_PLACE = {"void", "interval", "daytimeinterval", "yearmonthinterval", "time"}
"""Spark types that Delta has none for, by `typeName`."""

RESERVED = "_metadata"
"""Spark's own column of every file: a MERGE into a table that has another by this name fails."""


def refuse_columns(schema: StructType, table: str) -> None:
    """Before anything is read or created, and by name: Delta's own words come late, or not at all."""
    for name in schema.names:
        if name.lower() == RESERVED:
            raise TargetError(
                f'column "{name}" can\'t be in a Delta table: Spark keeps a column of its own by that name',
                table=table,
                column=name,
                hint=f"give it another name in a transform: SELECT {spark_name(name)} AS metadata, … FROM source",
            )
    if (pair := twins(schema.names)) is not None:
        raise TargetError(
            f'columns "{pair[0]}" and "{pair[1]}" differ only by case, which Delta can\'t tell apart',
            table=table,
            column=pair[1],
            hint="give one of them another name in the transform",
        )
    for path, kind in _leaves(schema):
        if kind.typeName() in NO_PLACE or _collation(kind) != "UTF8_BINARY":
            raise TargetError(
                f'column "{path}" is {kind.simpleString()}, which Delta has no place for',
                table=table,
                column=path,
                hint=f"cast it in the transform: CAST({spark_name(path)} AS string)",
            )


def sql_type(kind: DataType) -> str:
    """As `simpleString`, with the names of fields quoted: they may hold blanks and commas."""
    inner: Any = kind
    match kind.typeName():
        case "struct":
            fields = (f"{spark_name(f.name)}: {sql_type(f.dataType)}" for f in inner.fields)
            return f"struct<{', '.join(fields)}>"
        case "array":
            return f"array<{sql_type(inner.elementType)}>"
        case "map":
            return f"map<{sql_type(inner.keyType)}, {sql_type(inner.valueType)}>"
    return kind.simpleString()


def field_names(fields: Iterable[StructField]) -> Iterator[str]:
    """Of all depths."""
    for field in fields:
        yield field.name
        for path, _ in _leaves(field.dataType):
            yield path


def _leaves(kind: DataType, path: str = "") -> Iterator[tuple[str, DataType]]:
    inner: Any = kind
    match kind.typeName():
        case "struct":
            for field in inner.fields:
                yield from _leaves(field.dataType, f"{path}.{field.name}" if path else field.name)
        case "array":
            yield from _leaves(inner.elementType, path)
        case "map":
            yield from _leaves(inner.keyType, path)
            yield from _leaves(inner.valueType, path)
        case _:
            yield path, kind


def _collation(kind: DataType) -> str:
    return str(getattr(kind, "collation", "UTF8_BINARY"))
