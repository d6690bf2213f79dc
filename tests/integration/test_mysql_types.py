"""Each MariaDB value arrives as it is, or is refused by column and value."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.lab import Lab, ok

from floodmark.errors import ConfigError
from floodmark.sources.mysql.types import listed, type_of

KINDS: dict[str, tuple[str, list[tuple[str, Any]]]] = {
    "tiny": ("tinyint", [("-128", -128), ("127", 127)]),
    "bool": ("boolean", [("true", 1), ("2", 2)]),
    "utiny": ("tinyint unsigned", [("255", 255)]),
    "small": ("smallint", [("-32768", -32768)]),
    "usmall": ("smallint unsigned", [("65535", 65535)]),
    "medium": ("mediumint", [("-8388608", -8388608)]),
    "umedium": ("mediumint unsigned", [("16777215", 16777215)]),
    "uint": ("int unsigned zerofill", [("4294967295", 4294967295)]),
    "big": ("bigint", [("-9223372036854775808", -(2**63)), ("9223372036854775807", 2**63 - 1)]),
    "ubig": ("bigint unsigned", [("18446744073709551615", Decimal(2**64 - 1)), ("0", Decimal(0))]),
    "price": ("decimal(38,10)", [("-1234567890123456789012345678.0123456789",) * 2]),
    "huge": ("decimal(65,30)", [(f"{'9' * 35}.{'1' * 30}",) * 2]),
    "single": ("float", [("16777217", 16777216.0), ("0.1", 0.10000000149011612), ("1.17549e-38", None)]),
    "twice": ("double", [("0.1", 0.1), ("1.7976931348623157e308", 1.7976931348623157e308), ("-5e-324", -5e-324)]),
    "flag": ("bit(1)", [("b'1'", True), ("b'0'", False)]),
    "bits": ("bit(12)", [("b'101010101010'", 2730)]),
    "allbits": ("bit(64)", [("18446744073709551615", Decimal(2**64 - 1))]),
    "moment": (
        "datetime(6)",
        [
            ("'2026-03-29 02:30:00.123456'", datetime(2026, 3, 29, 2, 30, 0, 123456)),
            ("'9999-12-31 23:59:59.999999'", datetime(9999, 12, 31, 23, 59, 59, 999999)),
            ("'1000-01-01'", datetime(1000, 1, 1)),
        ],
    ),
    "stamp": (
        "timestamp(3) NULL",
        [
            ("'2026-10-25 01:30:00.5'", datetime(2026, 10, 25, 1, 30, 0, 500000)),
            ("'1970-01-01 00:00:01'", datetime(1970, 1, 1, 0, 0, 1)),
        ],
    ),
    "day": ("date", [("'2026-02-28'", date(2026, 2, 28)), ("'1582-10-10'", date(1582, 10, 10))]),
    "span": ("time(6)", [("'-838:59:59'", "-838:59:59.000000"), ("'23:00:00.5'", "23:00:00.500000")]),
    "vintage": ("year", [("2026", 2026), ("0", 0), ("1901", 1901)]),
    "letters": ("varchar(50)", [("'a🦆ß\\\\n'", "a🦆ß\\n"), ("''", ""), ("'  '", "  ")]),
    "latin": ("varchar(20) CHARACTER SET latin1", [("'é€'", "é€")]),
    "story": ("longtext", [("repeat('🦆', 70000)", "🦆" * 70000)]),
    "doc": ("json", [("""'{"a": [1, null]}'""", '{"a": [1, null]}')]),
    "choice": ("enum('x','y''z')", [("'y''z'", "y'z"), ("''", "")]),
    "some": ("set('a','b')", [("'a,b'", "a,b"), ("''", "")]),
    "raw": ("binary(3)", [("x'00ff'", b"\x00\xff\x00")]),
    "blobs": ("longblob", [("x'fffe00'", b"\xff\xfe\x00"), ("''", b"")]),
    "odd`na me": ("int", [("7", 7)]),
    "uid": ("uuid", [("'123e4567-e89b-12d3-a456-426655440000'", "123e4567-e89b-12d3-a456-426655440000")]),
    "host": ("inet6", [("'::ffff:10.0.0.1'", "::ffff:10.0.0.1")]),
}


def loaded(lab: Lab) -> list[Any]:
    assert lab.spark is not None
    return sorted(lab.spark.read.format("delta").load(lab.table).collect(), key=lambda row: row["id"])


def plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def test_every_value_of_every_type_arrives(my_lab: Lab) -> None:
    """From a server session that shows times in another zone, and reads names and backslashes its own way."""
    my_lab.execute("SET GLOBAL time_zone = '+05:30', GLOBAL sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'")
    try:
        assert_every_value(my_lab)
    finally:
        my_lab.execute("SET GLOBAL time_zone = '+00:00', GLOBAL sql_mode = DEFAULT")


def assert_every_value(lab: Lab) -> None:
    columns = ", ".join(f"{lab_quote(name)} {declared}" for name, (declared, _) in KINDS.items())
    lab.execute("DROP TABLE orders")
    lab.execute(f"CREATE TABLE orders (id int PRIMARY KEY, {columns}) CHARACTER SET utf8mb4")
    deepest = max(len(values) for _, values in KINDS.values())
    with lab.mariadb() as db, db.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00', sql_mode = ''")
        for i in range(deepest):
            given = [values[i][0] if i < len(values) else "NULL" for _, values in KINDS.values()]
            cursor.execute(f"INSERT INTO orders VALUES ({i}, {', '.join(given)})")
        cursor.execute(f"INSERT INTO orders (id) VALUES ({deepest})")
    ok(lab.project(change="{by: sequence, column: id, delay: 0s}").run("orders"))
    rows = loaded(lab)
    for name, (declared, values) in KINDS.items():
        for i, (_, expected) in enumerate(values):
            got = plain(rows[i][name])
            if name in ("price", "huge"):
                assert str(got) == expected, declared
            elif expected is not None:
                assert got == expected, f"{declared}: {got!r}"
        assert rows[deepest][name] is None, f"{declared}: NULL stays NULL"
    assert rows[2]["single"] == pytest.approx(1.17549e-38, rel=1e-7)


def lab_quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.mark.parametrize(
    ("declared", "value", "shown"),
    [
        ("date", "0000-00-00", "0000-00-00"),
        ("date", "2026-00-00", "2026-00-00"),
        ("datetime", "0000-00-00 00:00:00", "0000-00-00 00:00:00"),
        ("timestamp NULL", "0000-00-00 00:00:00", "0000-00-00 00:00:00"),
    ],
)
def test_a_zero_date_is_refused_by_column_and_value(my_lab: Lab, declared: str, value: str, shown: str) -> None:
    my_lab.execute(f"ALTER TABLE orders ADD COLUMN born {declared}")
    with my_lab.mariadb() as db, db.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        cursor.execute(f"INSERT INTO orders VALUES (1, 'a', '2026-01-01', '{value}')")
    result = my_lab.project().run("orders")
    assert f'column "born" of orders holds {shown}, which is no' in result.errors[0]
    assert not result.success


def test_a_zero_date_in_the_cursor_is_refused_by_name(my_lab: Lab) -> None:
    with my_lab.mariadb() as db, db.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        cursor.execute("INSERT INTO orders VALUES (1, 'a', '0000-00-00')")
    result = my_lab.project().run("orders")
    assert 'column "updated_at" of orders holds 0000-00-00' in result.errors[0]


def test_a_type_that_can_not_be_carried_is_refused_with_a_way_out(my_lab: Lab) -> None:
    my_lab.execute("ALTER TABLE orders ADD COLUMN place point")
    with pytest.raises(ConfigError, match='column "place" of orders is point') as caught:
        my_lab.project().plan("orders")
    assert "query" in (caught.value.hint or "")


def test_a_zoneless_cursor_is_in_the_zone_that_the_file_names(my_lab: Lab) -> None:
    my_lab.insert((1, "a", "2026-07-01 12:00:00"))
    project = my_lab.project(change="{by: timestamp, column: updated_at, timezone: Europe/Berlin, delay: 0s}")
    ok(project.run("orders"))
    state = project.store.get("orders")
    assert state is not None
    assert state.mark is not None
    assert state.mark.values == (datetime(2026, 7, 1, 10, tzinfo=UTC),)
    my_lab.insert((2, "b", "2026-07-01 12:00:00.000001"))
    assert ok(project.run("orders")).rows.inserted == 1
    my_lab.assert_equal()


def test_the_listing_names_every_type_once() -> None:
    names = [declared for declared, _, _ in listed()]
    assert len(set(names)) == len(names)
    assert {d: s for d, s, _ in listed()}["bigint unsigned"] == "decimal(20,0)"
    assert type_of("geometry") is None
