"""Columns of lake tables: how their types are written in SQL, and which can't be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from floodmark.errors import TargetError
from floodmark.model.names import spark_name, twins

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType


def refuse_names(schema: StructType, table: str, lake: str, reserved: Collection[str]) -> None:
    article = "an" if lake[0] in "AEIOU" else "a"
    for name in schema.names:
        if name.lower() in reserved:
            raise TargetError(
                f'column "{name}" can\'t be in {article} {lake} table: Spark keeps a column of its own by that name',
                table=table,
                column=name,
                hint="give it another name in a transform: "
                f"SELECT {spark_name(name)} AS {name.strip('_')}, … FROM source",
            )
    if (pair := twins(schema.names)) is not None:
        raise TargetError(
            f'columns "{pair[0]}" and "{pair[1]}" differ only by case, which {lake} can\'t tell apart',
            table=table,
            column=pair[1],
            hint="give one of them another name in the transform",
        )


def refuse_types(schema: StructType, table: str, lake: str, lacks: Collection[str]) -> None:
    """`lacks` are Spark's types that the lake has none for, by `typeName`."""
    for path, kind in leaves(schema):
        if kind.typeName() in lacks or _collation(kind) != "UTF8_BINARY":
            raise TargetError(
                f'column "{path}" is {kind.simpleString()}, which {lake} has no place for',
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
        for path, _ in leaves(field.dataType):
            yield path


def leaves(kind: DataType, path: str = "") -> Iterator[tuple[str, DataType]]:
    inner: Any = kind
    match kind.typeName():
        case "struct":
            for field in inner.fields:
                yield from leaves(field.dataType, f"{path}.{field.name}" if path else field.name)
        case "array":
            yield from leaves(inner.elementType, path)
        case "map":
            yield from leaves(inner.keyType, path)
            yield from leaves(inner.valueType, path)
        case _:
            yield path, kind


def _collation(kind: DataType) -> str:
    return str(getattr(kind, "collation", "UTF8_BINARY"))
