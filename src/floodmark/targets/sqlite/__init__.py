"""SQLite files as targets: staged as Parquet, loaded by the driver, one writer at a time."""
