from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from floodmark.cli.failure import Redactor, error_document, error_lines, exit_code_of_result, first_words, worst
from floodmark.errors import ConfigError, FloodmarkError, LeaseHeld, Place, SourceError

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Fakes

PLACE = Place("floodmark.yml", 14, "    change: {by: timestamp, column: updatd_at}")


def test_an_error_names_the_place_and_the_hint() -> None:
    error = ConfigError(
        'column "updatd_at" is not in public.orders',
        pipeline="orders",
        declared_at=PLACE,
        hint="did you mean updated_at? Columns of public.orders: order_id, updated_at",
    )
    assert error_lines(error) == [
        '✗ orders  column "updatd_at" is not in public.orders',
        "  floodmark.yml:14  change: {by: timestamp, column: updatd_at}",
        "  did you mean updated_at? Columns of public.orders: order_id, updated_at",
    ]


def test_a_hint_of_several_lines_keeps_its_shape() -> None:
    error = SourceError("3 rows have no updated_at", hint="choose one:\n  nulls: skip   leave them out, counted")
    assert error_lines(error, pipeline="orders") == [
        "✗ orders  3 rows have no updated_at",
        "  choose one:",
        "    nulls: skip   leave them out, counted",
    ]


def test_another_runner_shows_its_exit_code() -> None:
    error = LeaseHeld("running already: host db-7, pid 4211, since 10:02:11", pipeline="orders")
    assert error_lines(error) == ["✗ orders  running already: host db-7, pid 4211, since 10:02:11 (exit 3)"]


def test_a_file_below_the_current_folder_is_shown_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    error = ConfigError("unknown key", declared_at=Place(str(tmp_path / "floodmark.yml"), 3))
    assert error_lines(error) == ["✗ unknown key", "  floodmark.yml:3"]


def test_the_unexpected_is_one_line_and_the_way_to_more() -> None:
    assert error_lines(ValueError("bad\nthing\n  at Foo.scala"), pipeline="orders", command="run") == [
        "✗ orders  ValueError: bad",
        "  floodmark run … --debug shows the traceback",
    ]
    assert error_lines(KeyError())[0] == "✗ KeyError"
    assert len(first_words(ValueError("x" * 5_000))) < 500


def test_codes_of_several_pipelines() -> None:
    assert worst([]) == worst([0, 0]) == 0
    assert worst([3, 2, 1, 0]) == 1
    assert worst([3, 2]) == 2
    assert worst([0, 3]) == 3
    assert worst([130, 0]) == 130


def test_codes_of_results(fakes: Fakes) -> None:
    assert exit_code_of_result(fakes.result()) == 0
    assert exit_code_of_result(fakes.result(success=False)) == 1
    assert exit_code_of_result(fakes.result(success=False, failure=RuntimeError())) == 1
    assert exit_code_of_result(fakes.result(success=False, failure=LeaseHeld("held"))) == 3


def test_an_error_as_a_document() -> None:
    form = error_document(ConfigError("m", pipeline="orders", column="c", declared_at=PLACE, hint="h"))
    assert json.loads(json.dumps(form)) == {
        "type": "ConfigError",
        "message": "m",
        "pipeline": "orders",
        "table": None,
        "column": "c",
        "declared_at": {"file": "floodmark.yml", "line": 14, "text": PLACE.text},
        "hint": "h",
        "exit_code": 2,
    }
    assert error_document(KeyError("k"), "orders")["exit_code"] == 1


def test_secrets_are_hidden_however_they_are_written() -> None:
    redact = Redactor()
    redact.learn(["p@ss w'rd\\", "", "p@ss"])
    forms = [
        "p@ss w'rd\\",
        "p%40ss%20w%27rd%5C",
        "p%40ss+w%27rd%5C",
        repr("p@ss w'rd\\")[1:-1],
        json.dumps("p@ss w'rd\\"),
    ]
    for form in forms:
        assert redact(f"<{form}>").strip('<>"') == "***"
    assert redact("p@ss") == "***"
    assert redact("plain") == "plain"


def test_a_password_in_a_url_is_hidden_before_anybody_has_learned_it() -> None:
    assert Redactor()("postgresql://etl:hun@ter2@db/shop") == "postgresql://etl:***@db/shop"
    assert Redactor()("sqlite:///state.db and http://host:8080/x") == "sqlite:///state.db and http://host:8080/x"


def test_a_document_keeps_its_numbers() -> None:
    redact = Redactor()
    redact.learn(["42"])
    assert redact.document({"version": 42, "errors": ["code 42", None], "42": True}) == {
        "version": 42,
        "errors": ["code ***", None],
        "***": True,
    }


def test_a_secret_of_several_lines_is_hidden_although_lines_are_indented() -> None:
    redact = Redactor()
    redact.learn(["line one\nline two"])
    assert error_lines(FloodmarkError("no: line one\nline two"), redact=redact) == ["✗ no: ***"]
