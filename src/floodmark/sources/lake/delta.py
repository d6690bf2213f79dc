"""Delta tables. Their log is read by the `deltalake` package."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from floodmark.connections.delta import DeltaConnection
from floodmark.errors import MissingExtra, SourceError
from floodmark.model.names import spark_name
from floodmark.model.spec import PipelineSpec
from floodmark.model.table import Column
from floodmark.retries import sounds_transient
from floodmark.sources.lake.source import LakeSource
from floodmark.sources.lake.values import column_of
from floodmark.sources.lake.versions import Version, Versions
from floodmark.sources.sql import unknown_table

if TYPE_CHECKING:
    from deltalake import DeltaTable


class DeltaSource(LakeSource):
    def __init__(self, connection: DeltaConnection, spec: PipelineSpec, root: Path) -> None:
        super().__init__(spec)
        self._folder = connection.folder(root)
        self._is_local = connection.is_local
        self._path = connection.table_path(root, self._name, "source.table", spec.at("source.table"))
        self._relation = self._related(None)

    def _table_sql(self) -> str:
        return f"delta.{spark_name(self._path)}"

    def _newest(self) -> int:
        return int(self._table().version())

    def _columns(self, version: int | None) -> tuple[Column, ...]:
        table = self._table(version)
        return tuple(column_of(f.name, str(f.type.type), nullable=f.nullable) for f in table.schema().fields)

    def _versions(self) -> Versions:
        with self._reading():
            history: list[dict[str, Any]] = self._table().history()
        moments = {int(e["version"]): datetime.fromtimestamp(e.get("timestamp", 0) / 1000, UTC) for e in history}
        return Versions([Version(number, moments[number]) for number in sorted(moments)])

    def _kept_from(self, version: int) -> int | None:
        later = [v.number for v in self._versions().known if v.number > version] if self._is_local else []
        return later[_first(later, self._is_whole)] if later else None

    def _is_whole(self, version: int) -> bool:
        return all(Path(uri).exists() or Path(unquote(uri)).exists() for uri in self._table(version).file_uris())

    def _table(self, version: int | None = None) -> DeltaTable:
        try:
            from deltalake import DeltaTable
        except ModuleNotFoundError as error:
            raise MissingExtra("deltalake is not installed", hint="pip install 'floodmark[delta]'") from error
        with self._reading():
            if DeltaTable.is_deltatable(self._path):
                return DeltaTable(self._path, version=version)
        raise unknown_table(self._name, self._folder, self._names(), self._spec.at("source.table"))

    def _names(self) -> list[str]:
        """Of the tables beside it, where the folder is on this machine."""
        folder = Path(self._folder)
        logs = [*folder.glob("*/_delta_log"), *folder.glob("*/*/_delta_log")] if self._is_local else []
        return sorted(str(log.parent.relative_to(folder)) for log in logs)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError) as error:
            raise SourceError(
                f"can't read the Delta table at {self._path}: {error}",
                table=self._name,
                declared_at=self._spec.at("source.table"),
                transient=sounds_transient(error),
            ) from error


def _first(versions: Sequence[int], is_good: Callable[[int], bool]) -> int:
    """The place of the oldest good one: all that follow it are, and the newest is."""
    low, high = 0, len(versions) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_good(versions[middle]) else (middle + 1, high)
    return low
