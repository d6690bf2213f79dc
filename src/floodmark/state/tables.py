"""The tables of the SQL store: the same on every database."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Dialect, Integer, MetaData, String, Table, Text, UniqueConstraint
from sqlalchemy.dialects.mysql import LONGTEXT, VARBINARY
from sqlalchemy.types import TypeDecorator, TypeEngine

LONGEST_NAME = 512
"""Characters; at four bytes each they still fit into a MySQL key."""


class Name(TypeDecorator[str]):
    """Exactly these characters. MySQL's text would take `Orders` for `orders`, and `a` for `a `: there it is bytes."""

    impl = String(LONGEST_NAME)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        on_mysql = dialect.name == "mysql"
        return dialect.type_descriptor(VARBINARY(4 * LONGEST_NAME) if on_mysql else String(LONGEST_NAME))

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return value.encode() if dialect.name == "mysql" and isinstance(value, str) else value

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002 - the port's
        return value.decode() if isinstance(value, bytes) else value


BODY = Text().with_variant(LONGTEXT(), "mysql")
"""MySQL's TEXT ends at 64 KiB."""

ON_MYSQL: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4"}

TABLES = MetaData()
PIPELINES = Table(
    "floodmark_pipelines",
    TABLES,
    Column("name", Name, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("body", BODY, nullable=False),
    **ON_MYSQL,
)
LEASES = Table(
    "floodmark_leases",
    TABLES,
    Column("resource", Name, primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("beat", BigInteger, nullable=False),
    Column("released", Boolean, nullable=False),
    Column("owner", BODY, nullable=False),
    **ON_MYSQL,
)
RUNS = Table(
    "floodmark_runs",
    TABLES,
    # SQLite numbers rows by itself only in a column that is exactly INTEGER.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("pipeline", Name, nullable=False),
    Column("started_at", String(32), nullable=False),
    Column("body", BODY, nullable=False),
    # Finds the newest. A constraint rather than an index, since it is made with the table, in one statement.
    UniqueConstraint("pipeline", "id", name="floodmark_runs_newest"),
    **ON_MYSQL,
)
# The format is its own key: two who make the tables at once can't leave two rows, and some servers ask for a key.
META = Table("floodmark_meta", TABLES, Column("format", Integer, primary_key=True, autoincrement=False), **ON_MYSQL)
