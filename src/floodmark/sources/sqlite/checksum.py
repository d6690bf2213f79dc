"""A checksum of rows for SQLite, which has no hash function of its own: registered on the connection."""

from __future__ import annotations

from hashlib import blake2b


def hash_row(*values: object) -> int:
    return int.from_bytes(blake2b(repr(values).encode(), digest_size=7).digest())


class Sum:
    """Order-free, and wide enough that SQLite's own sum can't overflow."""

    def __init__(self) -> None:
        self.total = 0

    def step(self, value: int) -> None:
        self.total = (self.total + value) % 2**62

    def finalize(self) -> int:
        return self.total
