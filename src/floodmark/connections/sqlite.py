"""A SQLite file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from floodmark.model.spec import ConnectionOptions


class SqliteConnection(ConnectionOptions):
    """A SQLite database file."""

    type: Literal["sqlite"] = "sqlite"
    path: str = Field(description="The database file, relative to the YAML file.")
