"""Writes docs/types.md from what real databases and a real run make of each type. Starts the servers and Spark.

python scripts/write_types.py           write it
python scripts/write_types.py --print   show it
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.h2 import H2  # noqa: E402
from tests.integration import test_types_jdbc, test_types_postgres, test_types_sqlite  # noqa: E402
from tests.services import PostgresServer  # noqa: E402
from tests.type_lab import PAGE, Catalogue  # noqa: E402

from floodmark.model.plan import Work  # noqa: E402
from floodmark.model.spec import SparkSpec  # noqa: E402
from floodmark.spark.session import open_session, stop_session  # noqa: E402

HEAD = """# Types

What becomes of each type: it arrives with its value, or the load is refused with the table, the column, the value and
the key of its row. Nothing is rounded, cut or replaced on the way.

The tables are generated from real databases and real runs (`python scripts/write_types.py`); a test compares them.
MySQL and MariaDB have theirs on [their own page](sources/mysql.md).

**A refused value** stops the load before its commit. Ways out: mend the row; leave the column out
(`transform: {sql: "SELECT id, name FROM source"}`: a column that is left out is neither read nor checked); or read the
table through a view that casts the column to text.

**A text where a number was meant** (a `numeric` without precision) is cast in a transform, where you say how many
digits you want: `SELECT id, CAST(amount AS decimal(20,4)) AS amount FROM source`. A `CAST` there is Spark's
own, which rounds; a [column rule](shaping/columns.md) (`columns: {amount: {cast: "decimal(20,4)"}}`) fails instead.

**In Delta**, moments are `timestamp` and zone-less times `timestamp_ntz`, both in microseconds, in one calendar from
the first year to the last. Spark and `deltalake`'s `QueryBuilder` read all of them (but no table with a column that
[grew](targets/delta.md)); `to_pyarrow_table`, pandas and Python stop at the years 1 and 9999. Intervals, times of day,
NULLs without a type and collated text have no place in a Delta table: a transform that makes such a column is refused
with the cast to use.
"""


@contextmanager
def catalogues(folder: Path) -> Iterator[list[tuple[Catalogue, Path]]]:
    """Each source's, with a folder to run in. A new source adds its line here."""
    with PostgresServer() as postgres:
        places = [folder / name for name in ("postgres", "sqlite", "jdbc")]
        for place in places:
            place.mkdir()
        yield [
            (test_types_postgres.catalogue(postgres.create_database()), places[0]),
            (test_types_sqlite.catalogue(places[1]), places[1]),
            (test_types_jdbc.catalogue(places[2]), places[2]),
        ]


def page() -> str:
    with tempfile.TemporaryDirectory() as name:
        needs = ["delta", "postgres", "sqlite", H2]
        spark = open_session(SparkSpec(), needs=needs, log_file=Path(name) / "spark.log", work=Work(0))
        try:
            with catalogues(Path(name)) as known:
                return "\n".join([HEAD, *(each.section(each.observe(place, spark)) for each, place in known)])
        finally:
            stop_session(spark)


if __name__ == "__main__":
    text = page()
    if "--print" in sys.argv:
        print(text, end="")
    else:
        PAGE.write_text(text)
