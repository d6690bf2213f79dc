"""The lab with a warehouse of Iceberg tables at the other end, read by PyIceberg: by somebody who is not Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.lab import Lab

from floodmark.connections.iceberg import IcebergConnection
from floodmark.connections.iceberg_catalog import Catalog
from floodmark.model.outcome import Landed, Load
from floodmark.spark.session import own_session
from floodmark.targets.iceberg.branch import Branch
from floodmark.targets.iceberg.target import IcebergTarget
from floodmark.testing.target_suite import Loading, World, a_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECTION = IcebergConnection(path="lake")


@dataclass
class IcebergLab(Lab):
    lake: str = "{type: iceberg, path: lake}"

    @property
    def table(self) -> str:
        return str(self.root / "lake" / "default" / "orders")

    def target_rows(self) -> list[tuple[Any, ...]]:
        rows = table_at(Path(self.table)).scan().to_arrow().to_pylist()
        return sorted((row["id"], row["val"], _shown(row["updated_at"])) for row in rows)

    def target_columns(self) -> list[str]:
        return [field.name for field in table_at(Path(self.table)).schema().fields]

    def branches(self) -> list[str]:
        return sorted(table_at(Path(self.table)).metadata.refs)


class Paused(IcebergTarget):
    """Has written its batch, and before it publishes, somebody else does something."""

    meanwhile: Callable[[], Any] = staticmethod(lambda: None)

    def publish(self, branch: Branch, load: Load) -> Landed | None:
        type(self).meanwhile()
        return super().publish(branch, load)


@dataclass(frozen=True)
class Lake:
    """A warehouse without a project around it, and several runners."""

    root: Path
    spark: SparkSession

    def begin(self, mode: str, kind: type[IcebergTarget] = IcebergTarget, **target: Any) -> Loading:
        def read(table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
            rows = table_at(self.root / "lake" / "default" / table).scan().to_arrow().to_pylist()
            return [tuple(row[c] for c in columns) for row in rows]

        world = World(open=lambda spec: kind(CONNECTION, spec, self.root), read=read, drop=lambda _: None)
        return Loading(world, own_session(self.spark), a_spec(mode, **target))

    def sql(self, text: str) -> Any:
        """Somebody else's; `{t}` is the table, `{c}` the catalog."""
        catalog = Catalog(CONNECTION, self.root)
        catalog.attach(self.spark)
        said = text.replace("{t}", catalog.sql_name("default", "orders")).replace("{c}", catalog.name)
        return self.spark.sql(said).collect()

    def table(self) -> Any:
        return table_at(self.root / "lake" / "default" / "orders")

    def branches(self) -> list[str]:
        return sorted(self.table().metadata.refs)


def table_at(folder: Path) -> Any:
    from pyiceberg.table import StaticTable

    version = (folder / "metadata" / "version-hint.text").read_text()
    return StaticTable.from_metadata(str(folder / "metadata" / f"v{version}.metadata.json"))


def _shown(moment: datetime) -> str:
    return f"{moment.astimezone(UTC) if moment.tzinfo else moment:%Y-%m-%d %H:%M:%S.%f}"
