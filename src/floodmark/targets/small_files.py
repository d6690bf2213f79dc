"""Which files of a lake's table are worth making part of larger ones."""

from __future__ import annotations

SMALL = 4 * 2**20
"""Bytes. What loads of a few rows leave is smaller, what a slice of a first load leaves is mostly larger: a bound above
that would have the first small run after it write the whole table anew."""

LARGE = 256 * 2**20
"""Bytes that a file is to have once it was made of small ones."""
