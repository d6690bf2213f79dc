"""dlt's side of quick.py: what a careful user writes for the same work. Runs in .tools/peers, not beside Floodmark.

    python benchmarks/peer_dlt.py URL FOLDER

Rows stay Arrow from the driver to the table, types come from the database rather than from the data, and one MERGE by
key writes the table. The cursor keeps its closed start, which reads the last value again: an open one would lose ties.
"""

from __future__ import annotations

import sys
from pathlib import Path

import dlt
from dlt.sources.sql_database import sql_table


def main(url: str, folder: Path) -> None:
    orders = sql_table(
        credentials=url.replace("postgresql://", "postgresql+psycopg2://"),
        table="orders",
        backend="pyarrow",
        reflection_level="full_with_precision",
        incremental=dlt.sources.incremental("updated_at"),
        primary_key="order_id",
        write_disposition={"disposition": "merge", "strategy": "upsert"},
    )
    pipeline = dlt.pipeline(
        "orders",
        pipelines_dir=str(folder / "pipelines"),
        destination=dlt.destinations.filesystem(bucket_url=(folder / "lake").as_uri()),
        dataset_name="shop",
    )
    pipeline.run(orders, table_format="delta").raise_on_failed_jobs()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
