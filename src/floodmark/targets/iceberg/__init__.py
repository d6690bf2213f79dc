"""Iceberg tables, each load on a branch of its own."""
