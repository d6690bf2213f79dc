"""Records that outlive the process: frozen, with one JSON form, tolerant of keys that a newer version added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", arbitrary_types_allowed=True, defer_build=True)

    def to_dict(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Self:
        return cls.model_validate(form)

    def but(self, **changes: Any) -> Self:
        """The same record with some fields changed."""
        return self.model_copy(update=changes)
