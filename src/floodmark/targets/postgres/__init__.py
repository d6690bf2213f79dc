"""Postgres tables as targets: staged in parallel, promoted in one short transaction."""
