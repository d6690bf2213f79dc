"""What happens to single columns on their way, declared by name."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from floodmark.model.options import Options

CAST = re.compile(
    r"boolean|tinyint|smallint|int|integer|bigint|float|double|string|binary|date|timestamp|timestamp_ntz|"
    r"decimal\(\s*\d+\s*(,\s*\d+\s*)?\)",
    re.IGNORECASE,
)


class MaskSpec(Options):
    """Characters that stay readable; a value that has no more than these is hidden as a whole."""

    keep_first: int = Field(default=0, ge=0, description="Readable characters at the beginning.")
    keep_last: int = Field(default=0, ge=0, description="Readable characters at the end.")


class ColumnRule(Options):
    """One column's rule. NULL stays NULL."""

    rename: str | None = Field(default=None, min_length=1, description="Its name in the target.")
    cast: str | None = Field(default=None, description="Spark SQL type; a value that does not fit fails the load.")
    hash: Literal["sha256", "sha512"] | None = Field(default=None, description="Load the hash instead of the value.")
    salt: SecretStr | None = Field(default=None, description="Put before the value that is hashed, from a variable.")
    mask: Literal["all"] | MaskSpec | None = Field(default=None, description="Load `***` instead of the value.")

    @field_validator("cast")
    @classmethod
    def _known_type(cls, text: str | None) -> str | None:
        if text is not None and not CAST.fullmatch(text.strip()):
            raise ValueError(f"{text!r} is not a type to cast to: for example bigint, decimal(12, 2), date or string")
        return text

    @model_validator(mode="after")
    def _one_value(self) -> ColumnRule:
        chosen = [name for name in ("cast", "hash", "mask") if getattr(self, name) is not None]
        if len(chosen) > 1:
            raise ValueError(f"a column takes one of {', '.join(chosen)}, not {len(chosen)} of them")
        if self.salt is not None and self.hash is None:
            raise ValueError("`salt` goes with `hash`")
        return self

    @property
    def changes_values(self) -> str | None:
        """The rule by which other values land than the source has."""
        return next((name for name in ("cast", "hash", "mask") if getattr(self, name) is not None), None)
