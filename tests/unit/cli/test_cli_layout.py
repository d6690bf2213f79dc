from __future__ import annotations

from floodmark.cli.layout import Column, Row, Table, lay_out

TABLE = Table(
    (Column("pipeline"), Column("rows", right=True), Column("mark")),
    (
        Row(("orders", "9,986", "2026-11-15 10:00:41"), ("⚠ no right",)),
        Row(("a", "–", "–"), ("! one", "! two")),
    ),
)


def test_columns_align_and_a_single_note_follows_its_row() -> None:
    assert list(lay_out(TABLE, None)) == [
        "pipeline   rows  mark",
        "orders    9,986  2026-11-15 10:00:41  ⚠ no right",
        "a             –  –",
        "  ! one",
        "  ! two",
    ]


def test_a_note_without_room_goes_below() -> None:
    assert list(lay_out(TABLE, 40))[1:3] == ["orders    9,986  2026-11-15 10:00:41", "  ⚠ no right"]


def test_too_narrow_for_a_table_loses_nothing() -> None:
    lines = list(lay_out(TABLE, 30))
    assert lines[:4] == ["orders", "  rows  9,986", "  mark  2026-11-15 10:00:41", "  ⚠ no right"]
    text = "\n".join(lines)
    assert all(part in text for row in TABLE.rows for part in (*row.cells, *row.notes))


def test_wide_characters_take_two_cells() -> None:
    lines = list(lay_out(Table((Column("name"), Column("n")), (Row(("注文", "1")), Row(("abcd", "2")))), None))
    assert lines[1:] == ["注文  1", "abcd  2"]


def test_a_table_without_rows_is_its_header() -> None:
    assert list(lay_out(Table((Column("pipeline"), Column("rows")), ()), 80)) == ["pipeline  rows"]
