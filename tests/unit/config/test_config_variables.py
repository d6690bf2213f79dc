from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from floodmark.config import load_project

if TYPE_CHECKING:
    from tests.unit.config.conftest import Desk


def table_of(desk: Desk, good: str, written: str, **options: Any) -> str:
    text = good.replace("table: public.orders", f"table: '{written}'")
    return desk.load(text, **options).pipelines["orders"].source.table or ""


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("${T}", "orders"),
        ("public.${T}", "public.orders"),
        ("${T}_${T}", "orders_orders"),
        ("${NOT_THERE:-other}", "other"),
        ("${NOT_THERE:-}", ""),
        ("${EMPTY:-other}", "other"),
        ("${EMPTY}", ""),
        ("${T:-other}", "orders"),
        ("$$", "$"),
        ("$${T}", "${T}"),
        ("$$$${T}", "$${T}"),
        ("$$${T}", "$orders"),
        ("cost $5 or $T", "cost $5 or $T"),
        ("${NOT_THERE:-a:-b $$ c}", "a:-b $ c"),
        ("${NESTED}", "${T}"),
    ],
)
def test_interpolation(desk: Desk, good: str, written: str, expected: str) -> None:
    environ = {"T": "orders", "EMPTY": "", "NESTED": "${T}"}
    assert table_of(desk, good, written, environ=environ) == expected


def test_given_wins_over_environment_wins_over_file(desk: Desk, good: str) -> None:
    text = good + "variables: {T: file}\n"
    assert table_of(desk, text, "${T}") == "file"
    assert table_of(desk, text, "${T}", environ={"T": "environment"}) == "environment"
    assert table_of(desk, text, "${T}", environ={"T": "environment"}, variables={"T": "given"}) == "given"


def test_the_files_own_variables_may_use_the_environment(desk: Desk, good: str) -> None:
    text = good + 'variables: {T: "${STAGE:-dev}.orders", N: 7, YES: true, DAY: 2026-01-02}\n'
    assert table_of(desk, text, "${T}") == "dev.orders"
    assert table_of(desk, text, "${T}", environ={"STAGE": "prod"}) == "prod.orders"
    assert table_of(desk, text, "${T}", variables={"STAGE": "test"}) == "test.orders"
    assert table_of(desk, text, "${N} ${YES} ${DAY}") == "7 true 2026-01-02"


def test_the_files_own_variables_do_not_use_each_other(desk: Desk, good: str) -> None:
    error = desk.fails(good.replace("public.orders", '"${A}"') + 'variables:\n  A: "${B}"\n  B: x\n')
    assert error.message == "variable B is not set"
    assert str(error.declared_at) == "floodmark.yml:11"
    assert "more problem" not in (error.hint or "")


def test_an_unset_variable_names_file_line_and_the_ways_out(desk: Desk, good: str) -> None:
    error = desk.fails(good.replace("public.orders", '"${ORDERS_TABLE}"'), environ={"PATH": "/bin"})
    assert error.message == "variable ORDERS_TABLE is not set"
    assert error.pipeline == "orders"
    assert error.declared_at is not None
    assert str(error.declared_at) == "floodmark.yml:6"
    assert error.declared_at.text == 'source: {connection: shop, table: "${ORDERS_TABLE}"}'
    assert error.hint == (
        "Set it in the environment, pass --var ORDERS_TABLE=..., or give a default: ${ORDERS_TABLE:-...}"
    )


def test_an_unset_variable_with_a_near_name(desk: Desk, good: str) -> None:
    error = desk.fails(good.replace("public.orders", '"${ORDRES_TABLE}"'), environ={"ORDERS_TABLE": "x"})
    assert error.hint is not None
    assert error.hint.startswith("did you mean ORDERS_TABLE? Set it")


def test_all_unset_variables_are_told(desk: Desk, good: str) -> None:
    text = good.replace("db://host/shop", "${URL_A}").replace("500", "${ROWS_B}")
    error = desk.fails(text)
    assert error.message == "variable URL_A is not set"
    assert error.hint is not None
    assert "1 more problem:\n  floodmark.yml:9  variable ROWS_B is not set" in error.hint


def test_an_unset_variable_is_told_once_and_breaks_nothing_else(desk: Desk, good: str) -> None:
    # A whole number is wanted there, and `keys` has a validator around it: neither may complain as well.
    for place in (": 500", ": updated_at", ": upsert", ": timestamp", "source: {connection: shop", "[order_id"):
        kept = place.rstrip("abcdefghijklmnopqrstuvwxyz_0123456789")
        error = desk.fails(good.replace(place, f'{kept}"${{X}}"'))
        assert error.message == "variable X is not set"
        assert "problem" not in (error.hint or ""), place


def test_the_type_of_a_connection_may_be_unset(desk: Desk, good: str) -> None:
    error = desk.fails(good.replace("type: shop", 'type: "${X}"'))
    assert error.message == "variable X is not set"
    assert "problem" not in (error.hint or "")


@pytest.mark.parametrize("written", ["${", "${T", "${}", "${1X}", "${A B}", "${T-x}", "${A:-${T}}", "${spark.x}"])
def test_a_malformed_variable(desk: Desk, good: str, written: str) -> None:
    error = desk.fails(good.replace("public.orders", f"'{written}'"), environ={"T": "x"})
    assert error.message == "a variable is not written as ${NAME} or ${NAME:-default}"
    assert str(error.declared_at) == "floodmark.yml:6"
    assert error.hint == "for a literal $ write $$"


def test_a_variable_becomes_a_number_or_a_boolean(desk: Desk, good: str) -> None:
    text = good.replace("500", "${N}").replace("keys:", 'deletion_vectors: "${OFF}", keys:')
    text = text.replace('"db://host/shop"', '"x", port: "${N}", ratio: "${HALF}", ssl: "${ON}"')
    project = desk.load(text, environ={"N": "42", "OFF": "false", "ON": "yes", "HALF": "0.5"})
    shop = project.connections["shop"].model_dump()
    assert project.pipelines["orders"].batch_rows == 42
    assert project.pipelines["orders"].target.deletion_vectors is False
    assert (shop["port"], shop["ratio"], shop["ssl"]) == (42, 0.5, True)


def test_a_variable_of_the_wrong_type(desk: Desk, good: str) -> None:
    error = desk.fails(good.replace("500", "${N}"), environ={"N": "many"})
    assert error.message == "pipelines.orders.batch_rows: expected a whole number, got 'many'"
    assert error.declared_at is not None
    assert error.declared_at.text == "batch_rows: ${N}"


def test_a_value_can_not_bring_structure(desk: Desk, good: str) -> None:
    evil = "x, mode: append}\n    evil: {a: 1"
    assert table_of(desk, good, "${T}", environ={"T": evil}) == evil


def test_keys_are_not_interpolated(desk: Desk, good: str) -> None:
    error = desk.fails(good.replace("batch_rows", '"${KEY}"'), environ={"KEY": "batch_rows"})
    assert error.message == "unknown key '${KEY}' in pipelines.orders"


def test_only_what_is_used_needs_its_variables(desk: Desk, good: str) -> None:
    unused = 'variables: {UNUSED: "${NOT_THERE}"}\ndefaults:\n  batch_rows: ${NOT_THERE}\n'
    assert desk.load(good + unused).pipelines["orders"].batch_rows == 500


def test_an_unset_default_is_told_once(desk: Desk, good: str) -> None:
    text = good.replace("    batch_rows: 500\n", "") + good[good.index("  orders:") :].replace("orders", "b")
    error = desk.fails(text.replace("    batch_rows: 500\n", "") + "defaults:\n  batch_rows: ${ROWS}\n")
    assert error.message == "variable ROWS is not set"
    assert error.declared_at is not None
    assert error.declared_at.text == "batch_rows: ${ROWS}"
    assert "problem" not in (error.hint or "")


def test_a_variable_must_be_a_single_value(desk: Desk, good: str) -> None:
    error = desk.fails(good + "variables:\n  A: [1]\n")
    assert error.message == "variables.A must be a single value, got a list"
    assert str(error.declared_at) == "floodmark.yml:11"


def test_state_and_spark_are_filled_too(desk: Desk, good: str) -> None:
    text = good + 'state: {type: sqlite, path: "${HOME_DIR}/s.db"}\nspark: {master: "local[${CORES}]"}\n'
    project = desk.load(text, environ={"HOME_DIR": "/home/x", "CORES": "2"})
    assert project.state == {"type": "sqlite", "path": "/home/x/s.db"}
    assert project.spark.master == "local[2]"


def test_the_process_environment_is_the_default(desk: Desk, good: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOODMARK_TEST_TABLE", "from_process")
    desk.write("floodmark.yml", good.replace("public.orders", '"${FLOODMARK_TEST_TABLE}"'))
    project = load_project(
        "floodmark.yml", connection_class=desk.classes.__getitem__, connection_types=lambda: list(desk.classes)
    )
    assert project.pipelines["orders"].source.table == "from_process"
