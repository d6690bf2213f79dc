"""The URLs of state databases, taken apart."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from floodmark.state import mysql, postgres
from floodmark.state.address import Address, parse_address

WAIT = timedelta(seconds=3)


@pytest.mark.parametrize(
    ("url", "address", "shown"),
    [
        ("postgresql://h", Address("postgresql", host="h"), "postgresql://h"),
        ("postgresql:///d", Address("postgresql", database="d"), "postgresql:///d"),
        (
            "PostgreSQL+psycopg://etl:s3%40cret@h:5433/my%20state",
            Address("postgresql", "etl", "s3@cret", "h", 5433, "my state"),
            "postgresql://etl:***@h:5433/my state",
        ),
        ("mysql://etl@[::1]:3307/d", Address("mysql", "etl", None, "::1", 3307, "d"), "mysql://etl@[::1]:3307/d"),
        (
            "postgres://u:a:b/c@h/d?sslmode=require&options=-csearch_path%3Dx&sslpassword=s3cret",
            Address(
                "postgres",
                "u",
                "a:b/c",
                "h",
                None,
                "d",
                {"sslmode": "require", "options": "-csearch_path=x", "sslpassword": "s3cret"},
            ),
            "postgres://u:***@h/d",
        ),
        (
            "postgres://u@/d?host=a&host=b",
            Address("postgres", "u", database="d", settings={"host": "a,b"}),
            "postgres://u@/d",
        ),
        ("mysql://h:/d", Address("mysql", host="h", database="d"), "mysql://h/d"),
    ],
)
def test_its_parts(url: str, address: Address, shown: str) -> None:
    assert parse_address(url) == address
    assert parse_address(url).shown == shown
    assert "s3" not in repr(parse_address(url))


@pytest.mark.parametrize("url", ["", "etl:s3cret@host", "postgresql:/h/d", "postgresql://u:p@h:port/d"])
def test_what_is_none(url: str) -> None:
    with pytest.raises(ValueError, match=r"not the URL|invalid literal"):
        parse_address(url)


def handed_to(monkeypatch: pytest.MonkeyPatch, driver: str) -> dict[str, Any]:
    """What the driver is asked to connect with; it then refuses."""
    seen: dict[str, Any] = {}

    def connect(**options: Any) -> None:
        seen.update(options)
        raise ConnectionRefusedError

    monkeypatch.setattr(f"{driver}.connect", connect)
    return seen


def test_what_the_url_says_wins_over_ours_on_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = handed_to(monkeypatch, "psycopg")
    with pytest.raises(ConnectionRefusedError):
        postgres.connect(parse_address("postgresql://u:p@h:1/d?connect_timeout=2&sslmode=require"), WAIT)
    assert seen == {
        "user": "u",
        "password": "p",
        "host": "h",
        "port": 1,
        "dbname": "d",
        "connect_timeout": "2",
        "sslmode": "require",
        "application_name": "floodmark",
        "prepare_threshold": None,
        "tcp_user_timeout": 3000,
    }


def test_settings_have_the_types_that_pymysql_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = handed_to(monkeypatch, "pymysql")
    url = "mysql://u:p@h:1/d?connect_timeout=2&ssl_ca=/ca.pem&ssl_check_hostname=false&local_infile=1&client_flag=4"
    with pytest.raises(ConnectionRefusedError):
        mysql.connect(parse_address(url), WAIT)
    assert seen.pop("init_command").startswith("SET SESSION innodb_lock_wait_timeout = 3, sql_mode = 'STRICT")
    assert seen == {
        "user": "u",
        "password": "p",
        "host": "h",
        "port": 1,
        "database": "d",
        "charset": "utf8mb4",
        "connect_timeout": 2,
        "read_timeout": 6,
        "write_timeout": 6,
        "ssl": {"ca": "/ca.pem", "check_hostname": False},
        "local_infile": True,
        "client_flag": 4 | 2,  # FOUND_ROWS
    }
