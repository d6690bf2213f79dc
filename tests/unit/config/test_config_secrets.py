from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from floodmark.config.secrets import mask, mask_line, secret_option
from floodmark.errors import ConfigError
from floodmark.model.passwords import passwords_in
from floodmark.sources.jdbc.connection import JdbcConnection

if TYPE_CHECKING:
    from tests.unit.config.conftest import Desk


def everything(error: ConfigError) -> str:
    place = error.declared_at
    return f"{error.message}|{error.hint}|{place.text if place else ''}|{error.value!r}"


def with_shop(good: str, options: str) -> str:
    return good.replace('url: "db://host/shop"', options)


def test_secrets_of_a_project(desk: Desk, good: str) -> None:
    text = with_shop(good, 'url: "${SHOP_URL}", password: literal-pw, token: "${API_TOKEN}", signature: signed')
    text = text.replace("public.orders", '"${ORDERS}"') + "state: postgresql://me:state-pw@host/db\n"
    project = desk.load(
        text,
        environ={
            "SHOP_URL": "db://user:url%2Dpw@host/shop",
            "API_TOKEN": "a-token-of-twenty-letters",
            "ORDERS": "orders",
            "OTHER_PASSWORD": "never used",
        },
    )
    assert set(project.secrets) == {
        "url%2Dpw",
        "url-pw",
        "literal-pw",
        "signed",
        "a-token-of-twenty-letters",
        "state-pw",
    }
    assert "a-token-of-twenty-letters" not in repr(project.model_dump(exclude={"connections"}))


@pytest.mark.parametrize("name", ["DB_PASSWORD", "PGPASS", "MY_SECRET", "token", "AWS_ACCESS_KEY_ID", "CREDENTIALS"])
def test_variables_with_a_secrets_name(desk: Desk, good: str, name: str) -> None:
    text = with_shop(good, f'url: x, port: "${{{name}}}"')
    assert desk.load(text, environ={name: "1234567"}).secrets == ("1234567",)
    default = with_shop(good, f'url: "${{{name}:-fallback}}"')
    assert desk.load(default).secrets == ("fallback",)
    declared = with_shop(good, f'url: "${{{name}}}"') + f"variables: {{{name}: in-file}}\n"
    assert desk.load(declared).secrets == ("in-file",)
    through = with_shop(good, 'url: "${PLAIN}"') + f'variables: {{PLAIN: "x-${{{name}}}"}}\n'
    assert desk.load(through, environ={name: "inner"}).secrets == ("inner",)


def test_no_secrets(desk: Desk, good: str) -> None:
    assert desk.load(good).secrets == ()
    assert desk.load(with_shop(good, "url: x, password: ''")).secrets == ()


@pytest.mark.parametrize(
    "options",
    [
        "password: [hunter2], url: x",
        "password: {a: hunter2}, url: x",
        "token: hunter2, url: x",
        'token: "${T}", url: x',
        'port: "${A_SECRET}", url: x',
        'port: "db://u:hunter2@h", url: x',
        'port: "${PLAIN_URL}", url: x',
        "prot: 1, url: db://u:hunter2@h/db",
        "prot: 1, url: 'db://h/db?user=u&password=hunter2'",
        "prot: 1, url: x, password: 'hunter2, or so'",
        'prot: 1, url: x, "password":"hunter2"',
        "prot: 1, url: x, password: hunter2",
        'prot: 1, url: x, password: "${NOPE:-hunter2}"',
        "url: [db://u:hunter2@h/db]",
        "password: hunter2, url: {",
        "password: hunter2, password: hunter2, url: x",
    ],
)
def test_no_secret_is_ever_shown(desk: Desk, good: str, options: str) -> None:
    environ = {"A_SECRET": "hunter2", "T": "hunter2", "PLAIN_URL": "db://u:hunter2@h"}
    error = desk.fails(with_shop(good, options), environ=environ)
    assert "hunter2" not in everything(error)
    assert error.declared_at is not None
    assert error.declared_at.file == "floodmark.yml"


def test_a_url_where_a_name_was_wanted(desk: Desk, good: str) -> None:
    error = desk.fails(good.replace("{connection: shop", '{connection: "db://u:hunter2@h"'))
    assert error.message == "unknown connection 'db://u:***@h' in pipelines.orders.source"
    assert "hunter2" not in everything(error)
    error = desk.fails(good.replace("type: shop", 'type: "${A_SECRET}"'), environ={"A_SECRET": "hunter2"})
    assert error.message == "unknown connection type '***' in connections.shop"


def test_a_numeric_password_is_not_shown_either(desk: Desk, good: str) -> None:
    error = desk.fails(with_shop(good, "url: x, password: 123456"))
    assert error.message == "connections.shop.password: expected text, got a hidden value"
    assert "123456" not in everything(error)


def test_our_own_words_are_masked(desk: Desk, good: str) -> None:
    error = desk.fails(with_shop(good, "url: x, token: hunter2"))
    assert error.message == "token *** is too short"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("password: hunter2", "password: ***"),
        ("- password: hunter2", "- password: ***"),
        ("db_password:   'it''s'  # no", "db_password:   ***  # no"),
        ("api_key: a, b", "api_key: ***"),
        ("apikey: a", "apikey: ***"),
        ("key: a", "key: ***"),
        ("keys: [order_id]", "keys: [order_id]"),
        ("monkey: a", "monkey: a"),
        ("password: ${PW}", "password: ${PW}"),
        ("password: '${PW}'", "password: '${PW}'"),
        ("password: ${PW:-hunter2}", "password: ***"),
        ("shop: {type: x, password: ${PW}, url: y}", "shop: {type: x, password: ${PW}, url: y}"),
        ('shop: {type: x, password: "a", url: y}', "shop: {type: x, password: ***, url: y}"),
        ("shop: {type: x, password: a, url: y}", "shop: {type: x, password: ***"),
        ('{"password":"x","a":1}', '{"password":***,"a":1}'),
        ("url: db://u:pw@h/db", "url: db://u:***@h/db"),
        ("url: db://u:p@w@h/db", "url: db://u:***@h/db"),
        ("url: db://u:${PW}@h/db", "url: db://u:${PW}@h/db"),
        ("url: db://u@h:5432/db", "url: db://u@h:5432/db"),
        ("url: host=h password=pw user=u", "url: host=h password=*** user=u"),
        ("change: {by: timestamp, column: updated_at}", "change: {by: timestamp, column: updated_at}"),
    ],
)
def test_lines_as_they_are_shown(line: str, shown: str) -> None:
    assert mask_line(line) == shown


def test_passwords_in_text() -> None:
    assert passwords_in("db://u:a%40b@h/x") == ["a%40b", "a@b"]
    assert passwords_in("db://:pw@h/x") == ["pw"]
    assert passwords_in("host=h password=pw") == ["pw"]
    assert passwords_in("db://h:5432/x?mail=a@b") == []
    assert passwords_in("db://u@h/x") == []


def test_longer_secrets_go_first() -> None:
    assert mask("pw and pw-long", ["pw", "pw-long", ""]) == "*** and ***"


def test_names_of_secret_options() -> None:
    assert all(map(secret_option, ["password", "PASSWORD", "sasl.password", "client_secret", "auth", "private-key"]))
    assert not any(map(secret_option, ["keys", "keyspace", "author", "compass", "url"]))


def test_columns_may_be_called_like_secrets(desk: Desk, good: str) -> None:
    """What `columns: {secret: drop}` says of a column is no secret: the word `drop` is in half of all messages."""
    rules = "columns: {secret: drop, password: {rename: passphrase}, token: {hash: sha256, salt: grain-of-it}}"
    text = good.replace("    source:", f"    {rules}\n    source:", 1)
    text = text.replace("mode:", "renames: {api_key: other_key}, mode:", 1)
    assert desk.load(text).secrets == ("grain-of-it",)


@pytest.mark.parametrize(
    "line", ["key: [order_id]", "columns: {secret: drop, nope: 1}", "columns: {token: {rename: 1}}"]
)
def test_the_line_of_a_slip_in_a_pipeline_is_shown(desk: Desk, good: str, line: str) -> None:
    error = desk.fails(good.replace("    source:", f"    {line}\n    source:", 1))
    assert error.declared_at is not None
    assert error.declared_at.text == line


def test_a_secret_in_a_pipeline_is_still_hidden(desk: Desk, good: str) -> None:
    error = desk.fails(good.replace("    source:", "    password: hunter2\n    source:", 1))
    assert "hunter2" not in everything(error)
    error = desk.fails(good.replace("    source:", "    columns: {a: {salt: hunter2}}\n    source:", 1))
    assert "hunter2" not in everything(error)


@pytest.mark.parametrize(
    ("url", "where", "hidden"),
    [
        ("jdbc:h2:file:/data/shop", "jdbc:h2:file:/data/shop", False),
        ("jdbc:oracle:thin:@//db:1521/shop", "//db:1521/shop", True),
        ("jdbc:sqlserver://db;user=me;password=pw", "jdbc:sqlserver://db", True),
        ("jdbc:db2://db:50000/shop:password=hunter2;", "jdbc:db2://db:50000/shop", True),
        ("jdbc:teradata://db/USER=me,PASSWORD=hunter2", "jdbc:teradata://db", True),
    ],
)
def test_of_a_jdbc_address_only_the_place_is_shown(url: str, where: str, hidden: bool) -> None:
    connection = JdbcConnection(url=SecretStr(url), driver="d")
    assert connection.where == where
    assert (url in connection.secrets) is hidden
    assert where not in connection.secrets
