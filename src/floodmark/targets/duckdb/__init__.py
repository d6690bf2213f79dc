"""DuckDB files as targets: staged as Parquet, which DuckDB reads itself, one writer at a time."""
