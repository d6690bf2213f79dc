"""Tables by name, and by a mark that tells one from another of its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_hex

from floodmark.connections.names import split_name
from floodmark.errors import ConfigError
from floodmark.model.spec import PipelineSpec


@dataclass(frozen=True)
class Names:
    """Of tables, as a database takes them."""

    database: str
    form: str
    """Told to who writes another."""
    fits: Callable[[str], bool] = bool

    def split(self, spec: PipelineSpec, usual: str) -> tuple[str, str]:
        """Schema and table; a name without a schema is in the usual one."""
        *schema, table = split_name(spec.target.table, spec.at("target.table"))
        if len(schema) > 1 or not self.fits(table):
            raise ConfigError(
                f"{spec.target.table} is not the name of a table that {self.database} can hold",
                declared_at=spec.at("target.table"),
                hint=f"write {self.form}",
            )
        return (schema[0] if schema else usual), table


def new_mark() -> str:
    return f"floodmark:{token_hex(8)}"


def mark_in(remark: object) -> str:
    """Of a table that was there before us: that it was given."""
    found = re.search(r"floodmark:([0-9a-f]+)", str(remark))
    return found[1] if found else "given"
