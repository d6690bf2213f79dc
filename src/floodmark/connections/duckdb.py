"""A DuckDB file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from floodmark.model.spec import ConnectionOptions


class DuckdbConnection(ConnectionOptions):
    """A DuckDB database file."""

    type: Literal["duckdb"] = "duckdb"
    path: str = Field(description="The database file, relative to the YAML file.")

    @property
    def java(self) -> tuple[str, ...]:
        return ()
