"""A table of a DuckDB file. Spark stages the batch as Parquet, with the file closed; one transaction reads it and
promotes it.

The table has no primary key. DuckDB's joins do not use one, its index is held in memory as a whole, rows that go and
come back in one transaction cost five times as much with it, and the type of a key's column could never grow. The load
itself brings a key once: rows are one for each key in the batch, and the ordinal lets one load in at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from floodmark.connections.duckdb import DuckdbConnection
from floodmark.connections.names import quote, text_literal
from floodmark.errors import TargetError
from floodmark.model.spec import PipelineSpec
from floodmark.targets.database.file import FileTarget
from floodmark.targets.database.names import Names, mark_in, new_mark
from floodmark.targets.database.parquet import parquet
from floodmark.targets.database.session import VALUE, Dialect, Session, Staged
from floodmark.targets.duckdb.session import DuckdbSession, driver
from floodmark.targets.duckdb.types import TYPES, as_read, as_staged, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

NAMES = Names("DuckDB", "`table` or `schema.table`")
_HERE = f"database_name = current_database() AND schema_name = {VALUE} AND table_name = {VALUE}"
_HELD = re.compile(r"Could not set lock|different configuration", re.IGNORECASE)
_PASSING = re.compile(r"conflict", re.IGNORECASE)


class DuckdbTarget(FileTarget):
    dialect = Dialect(distinct="{} IS DISTINCT FROM {}", compares_rows=False, has_indexes=False)
    types = TYPES

    def __init__(self, connection: DuckdbConnection, spec: PipelineSpec, root: Path) -> None:
        self._schema, table = NAMES.split(spec, "main")
        super().__init__(spec, root / connection.path, table, f"{quote(self._schema)}.")

    @property
    def resource(self) -> str:
        return f"duckdb:{self._path.resolve()}/{self._schema}.{self._name}"

    @contextmanager
    def _staged(self, db: Session, batch: DataFrame) -> Iterator[Staged]:
        assert isinstance(db, DuckdbSession)  # noqa: S101 - our own
        db.close()  # others may read while Spark works
        with parquet(as_staged(batch), self._path, self._table) as folder:
            files = ", ".join(text_literal(str(path)) for path in folder.glob("*.parquet"))
            rows_of = f"read_parquet([{files}], hive_partitioning = false)"  # whatever the folders above are called
            db.run(f"CREATE TEMP VIEW floodmark_stage AS SELECT {as_read(batch.schema)} FROM {rows_of}")
            ((rows,),) = db.ask("SELECT count(*) FROM floodmark_stage")
            yield Staged("floodmark_stage", rows)

    # -- the table ------------------------------------------------------------------------------------------------

    def _create(self, db: Session, schema: StructType) -> None:
        columns = ", ".join(f"{quote(f.name)} {self._sql_type(f.dataType, f.name)}" for f in schema.fields)
        with db.transaction():
            db.run(f"CREATE TABLE {self._table} ({columns})")
            db.run(f"COMMENT ON TABLE {self._table} IS '{new_mark()}'")

    def _table_id(self, db: Session, table: str) -> str | None:
        found = db.ask(f"SELECT comment FROM duckdb_tables() WHERE {_HERE}", (self._schema, table))
        return mark_in(found[0][0]) if found else None

    def _declared(self, db: Session) -> list[tuple[str, str]]:
        query = f"SELECT column_name, data_type FROM duckdb_columns() WHERE {_HERE} ORDER BY column_index"
        return [(str(name), str(kind)) for name, kind in db.ask(query, (self._schema, self._name))]

    def _spark_type(self, declared: str) -> DataType | None:
        return spark_type(declared)

    # -- the file -------------------------------------------------------------------------------------------------

    @contextmanager
    def _connected(self) -> Iterator[DuckdbSession]:
        db = DuckdbSession(self._path, self._schema)
        try:
            yield db
        except driver().Error as error:
            raise self._refusal(error) from error
        finally:
            db.close()

    def _refusal(self, error: Exception) -> TargetError:
        said = str(error).strip().splitlines()[0]
        if _HELD.search(said):
            return TargetError(
                f"{self._path} is open elsewhere, and DuckDB lets one process write to a file: {said}",
                table=self._spec.target.table,
                declared_at=self._spec.at("target.connection"),
                hint="close it there; readers that open it read-only keep a load out, too",
                transient=True,
            )
        return TargetError(
            f"{self._path}: {said}",
            table=self._spec.target.table,
            declared_at=self._spec.at("target"),
            hint="set a lower `batch_rows`: rows that one load updates are held in memory"
            if "Out of Mem" in said
            else None,
            transient=_PASSING.search(said) is not None,
        )
