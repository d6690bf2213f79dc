"""A table on a database server. Spark's tasks stage the batch beside it, in tables of this attempt's own. A crash
leaves them behind, and the next load removes them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING, ClassVar

from floodmark.connections.names import quote
from floodmark.errors import SourceError, TargetError
from floodmark.model.spec import PipelineSpec
from floodmark.targets.database.names import Names
from floodmark.targets.database.session import VALUE, Session, Staged
from floodmark.targets.database.target import DatabaseTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ServerTarget(DatabaseTarget):
    names: ClassVar[Names]

    def __init__(self, spec: PipelineSpec, usual_schema: str) -> None:
        self._schema, table = self.names.split(spec, usual_schema)
        super().__init__(spec, table, f"{quote(self._schema)}.")
        self._stages = f"floodmark_stage_{sha256(self._table.encode()).hexdigest()[:12]}_"

    # -- what each server does in its own way ---------------------------------------------------------------------

    @abstractmethod
    def _opened(self) -> AbstractContextManager[Session]:
        """Closed at the end. Raises SourceError where the server can't be reached."""

    @abstractmethod
    def _driver_error(self) -> type[Exception]: ...

    @abstractmethod
    def _told(self, error: Exception) -> tuple[str, bool]:
        """The server's words, and whether it may work when tried again."""

    @abstractmethod
    def _fill(self, db: Session, batch: DataFrame, name: str) -> Staged:
        """Into tables whose names begin with `name`: only what attempts brought that Spark counts."""

    # -- what all of them do --------------------------------------------------------------------------------------

    @contextmanager
    def _connected(self) -> Iterator[Session]:
        try:
            with self._opened() as db:
                yield db
        except SourceError as error:
            at = self._spec.at("target.connection")
            table = self._spec.target.table
            raise TargetError(error.message, table=table, declared_at=at, transient=error.transient) from error
        except self._driver_error() as error:
            said, may_pass = self._told(error)
            raise TargetError(
                f"{self._spec.target.table}: {said}",
                table=self._spec.target.table,
                declared_at=self._spec.at("target"),
                transient=may_pass,
            ) from error

    @contextmanager
    def _staged(self, db: Session, batch: DataFrame) -> Iterator[Staged]:
        self._remove_stages(db)
        yield self._fill(db, batch, self._stages + token_hex(4))
        self._remove_stages(db)

    def _remove_stages(self, db: Session) -> None:
        """Of runs that died or failed, too: whoever is here holds the lease."""
        found = db.ask(
            f"SELECT table_name FROM information_schema.tables WHERE table_schema = {VALUE} "
            f"AND left(table_name, {len(self._stages)}) = {VALUE}",
            (self._schema, self._stages),
        )
        for (name,) in found:
            db.run(f"DROP TABLE IF EXISTS {self._beside(name)}")

    def _beside(self, name: str) -> str:
        return f"{self._prefix}{quote(name)}"

    def _not_writable(self, trouble: str, fix: str) -> TargetError:
        return TargetError(
            f"can't write to {self._spec.target.table}{trouble}",
            table=self._spec.target.table,
            declared_at=self._spec.at("target.table"),
            hint=f"{fix}; staging tables and heads are kept beside the table",
        )
