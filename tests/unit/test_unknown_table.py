"""What is guessed for a table that is not there."""

from __future__ import annotations

import pytest

from floodmark.sources.sql import unknown_table

NAMES = ["archive.orders", "public.orders", "public.types"]


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("public.ordres", "public.orders"),
        ("publik.orders", "public.orders"),
        ("archive.order", "archive.orders"),
        ("order", "public.orders"),
        ("public.nope", None),
        ("types.public", None),
    ],
)
def test_only_a_name_that_is_near_is_guessed(name: str, guess: str | None) -> None:
    hint = str(unknown_table(name, "shop", NAMES, None).hint)
    assert hint.endswith("Tables there: archive.orders, public.orders, public.types")
    assert hint.startswith(f"did you mean {guess}? " if guess else "Tables there")
