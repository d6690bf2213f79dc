"""The real command line on a project of fixed answers."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floodmark.cli.main import main
from floodmark.errors import ConfigError, LeaseHeld, Place, SourceError
from floodmark.model.event import Notice, Planned, StageStarted
from floodmark.model.outcome import PipelineStatus, Rows
from floodmark.registry import Registry

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Fakes


def test_plan_shows_the_good_and_tells_the_bad(fakes: Fakes) -> None:
    place = Place("floodmark.yml", 14, "column: updatd_at")
    fakes.project.plans["orders"] = ConfigError(
        'column "updatd_at" is not there', declared_at=place, hint="updated_at?"
    )
    fakes.capabilities = {"leases": "can't keep two runners apart", "history": None}
    said = fakes.call("plan")
    assert said.code == 2
    assert "events    sequence  event_id" in said.out
    assert "! state store: can't keep two runners apart" in said.out
    assert said.err.splitlines() == [
        '✗ orders  column "updatd_at" is not there',
        "  floodmark.yml:14  column: updatd_at",
        "  updated_at?",
    ]
    assert fakes.project.closed


def test_plan_as_json(fakes: Fakes) -> None:
    said = fakes.call("plan", "orders", "--json")
    assert said.code == 0
    assert [form["pipeline"] for form in json.loads(said.out)["pipelines"]] == ["orders"]
    assert said.err == ""


def test_a_plan_tells_what_is_tried_again_beside_its_table(fakes: Fakes) -> None:
    fakes.project.events = [Planned(fakes.plan()), Notice("orders", "cut off: trying again in a moment (2 of 5)")]
    said = fakes.call("plan", "orders")
    assert said.err == "! orders  cut off: trying again in a moment (2 of 5)\n"
    assert "trying again" not in said.out
    assert json.loads(fakes.call("plan", "orders", "--json").out)


def test_run_closes_each_and_sums_up(fakes: Fakes) -> None:
    fakes.project.results["events"] = fakes.result("events", rows=Rows(5, 5, 0, 0), notices=("late rows",))
    fakes.project.events = [Planned(fakes.plan()), StageStarted("orders", "read", 1, 1), Notice("events", "late rows")]
    said = fakes.call("run")
    assert said.code == 0
    lines = said.out.splitlines()
    assert (
        "✓ orders  7,984 updated, 2,002 inserted, 0 deleted in 2.6 s   mark 2026-11-15 10:00:41   version 42" in lines
    )
    assert any(line.startswith("✓ events  5 inserted in") for line in lines)
    assert lines.count("! events  late rows") == 2  # emitted once per pipeline by the fake, never repeated at the end
    assert lines[-3].startswith("pipeline  result")


def test_one_failure_does_not_stop_the_rest(fakes: Fakes) -> None:
    error = SourceError("no route to host", hint="is it up?")
    fakes.project.results["orders"] = fakes.result(success=False, failure=error, errors=(str(error),), mark=None)
    said = fakes.call("run")
    assert said.code == 1
    assert said.err.splitlines() == ["✗ orders  no route to host", "  is it up?"]
    assert "✓ events" in said.out
    assert "no route to host" in said.out.splitlines()[-2]


def test_a_failure_without_an_exception_is_still_told(fakes: Fakes) -> None:
    fakes.project.results["orders"] = fakes.result(success=False, errors=("it broke",))
    said = fakes.call("run", "orders")
    assert (said.code, said.err) == (1, "✗ orders  it broke\n")


@pytest.mark.parametrize(
    ("orders", "events", "code"),
    [
        (LeaseHeld("running already"), None, 3),
        (LeaseHeld("running already"), ConfigError("wrong"), 2),
        (LeaseHeld("running already"), SourceError("down"), 1),
        (ZeroDivisionError("x"), None, 1),
    ],
)
def test_exit_codes(fakes: Fakes, orders: Exception, events: Exception | None, code: int) -> None:
    fakes.project.results["orders"] = fakes.result(success=False, failure=orders)
    if events is not None:
        fakes.project.results["events"] = events  # raised, although a run should return it: the same to the user
    assert fakes.call("run").code == code


def test_run_as_json_is_one_document_whatever_else_prints(fakes: Fakes) -> None:
    fakes.project.on_run = lambda: print("a transform that prints")
    failure = ConfigError("wrong", hint="mend it")
    fakes.project.results["events"] = fakes.result("events", success=False, failure=failure, errors=("wrong",))
    said = fakes.call("run", "--json")
    first, second = json.loads(said.out)
    assert said.code == 2
    assert first["rows"]["updated"] == 7_984
    assert (second["errors"], second["hints"]) == (["wrong"], ["mend it"])
    assert "a transform that prints" in said.err


def test_json_survives_a_child_that_writes_to_the_descriptor(
    fakes: Fakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, err = (tmp_path / "out").open("w"), (tmp_path / "err").open("w")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)

    def write() -> None:
        os.write(out.fileno(), b"from the JVM\n")

    fakes.project.on_run = write
    with out, err:
        assert main(["run", "orders", "--json"]) == 0
    assert json.loads((tmp_path / "out").read_text())[0]["pipeline"] == "orders"
    assert (tmp_path / "err").read_text() == "from the JVM\n"


def test_run_options_reach_the_project(fakes: Fakes) -> None:
    registry = Registry({})
    said = fakes.call(
        *("run", "ord*", "-f", "x.yml", "--var", "A=b=c", "--until-complete", "--max-slices", "3"),
        *("--full-refresh", "--master", "local[1]"),
        registry=registry,
    )
    assert said.code == 0
    assert fakes.project.calls == [("until complete", "orders"), ("run", "orders", True, 3)]
    assert fakes.loads == [
        {
            "path": Path("x.yml"),
            "variables": {"A": "b=c"},
            "registry": registry,
            "master": "local[1]",
            "remote": None,
            "resident": True,
        }
    ]


def test_dry_run_is_a_plan(fakes: Fakes) -> None:
    said = fakes.call("run", "orders", "--dry-run", "--full-refresh")
    assert said.code == 0
    assert fakes.project.calls == [("plan", "orders", True)]
    assert "pipeline  change" in said.out


class Terminal:
    """Answers like a terminal; pytest's own streams don't."""

    def __init__(self, stream: Any, answer: str = "") -> None:
        self._stream, self._answer = stream, answer

    def isatty(self) -> bool:
        return True

    def readline(self, *_: object) -> str:
        return self._answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@pytest.mark.parametrize(("answer", "code", "runs"), [("y\n", 0, 1), ("n\n", 1, 0)])
def test_a_full_refresh_asks_a_person(
    fakes: Fakes, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, runs: int
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(sys.stdin, answer))
    monkeypatch.setattr(sys, "stderr", Terminal(sys.stderr))
    said = fakes.call("run", "orders", "--full-refresh")
    assert (said.code, len(fakes.project.calls)) == (code, runs)
    assert fakes.call("run", "orders", "--full-refresh", "--yes").code == 0


def test_an_unknown_pipeline_is_a_configuration_error(fakes: Fakes) -> None:
    said = fakes.call("run", "ordrs")
    assert said.code == 2
    assert said.err.splitlines() == ["✗ there is no pipeline ordrs", "  did you mean orders?"]


def test_a_file_that_does_not_load(fakes: Fakes) -> None:
    fakes.load_error = ConfigError(
        "unknown key `tabel`", declared_at=Place("floodmark.yml", 3), hint="did you mean table?"
    )
    assert fakes.call("status").err.splitlines()[1] == "  floodmark.yml:3"
    said = fakes.call("status", "--json")
    assert said.code == 2
    assert json.loads(said.out)["error"]["hint"] == "did you mean table?"


@pytest.mark.parametrize("given", ["hunter2", "=hunter2"])
def test_a_bad_variable_is_refused_and_not_echoed(fakes: Fakes, given: str) -> None:
    said = fakes.call("plan", "--var", given)
    assert said.code == 2
    assert said.err.startswith("✗ --var is not NAME=VALUE")
    assert "hunter2" not in said.err


def test_the_unexpected_needs_debug_for_its_traceback(fakes: Fakes) -> None:
    fakes.load_error = ZeroDivisionError("division by zero")
    said = fakes.call("plan")
    assert said.code == 1
    assert said.err.splitlines() == [
        "✗ ZeroDivisionError: division by zero",
        "  floodmark plan … --debug shows the traceback",
    ]
    assert "Traceback (most recent call last)" in fakes.call("plan", "--debug").err
    assert "Traceback (most recent call last)" in fakes.call("--debug", "plan").err


def test_secrets_leave_by_no_way(fakes: Fakes) -> None:
    secret = "hun'ter2"
    fakes.project.spec = fakes.spec(secrets=(secret,))
    try:
        raise SourceError(f"login with {secret} refused", hint=f"url postgresql://etl:{secret}@db/shop")
    except SourceError as raised:
        error = raised
    fakes.project.results["orders"] = fakes.result(success=False, failure=error, errors=(str(error),))
    fakes.project.events = [Notice("orders", f"tried {secret}")]
    fakes.project.plans["orders"] = error
    for argv in (["run"], ["run", "--json"], ["run", "--debug"], ["plan"], ["plan", "--json", "--debug"]):
        said = fakes.call(*argv)
        assert "***" in said.out + said.err
        for form in (secret, repr(secret), json.dumps(secret)):
            assert form.strip("'\"") not in said.out + said.err


def test_a_variable_with_a_secret_name_is_hidden_even_if_nothing_loads(fakes: Fakes) -> None:
    fakes.load_error = ConfigError("can't use hunter2 here")
    assert fakes.call("plan", "--var", "DB_PASSWORD=hunter2").err == "✗ can't use *** here\n"


def test_an_interrupt_is_no_traceback(fakes: Fakes) -> None:
    fakes.project.results["orders"] = KeyboardInterrupt()
    said = fakes.call("run")
    assert said.code == 130
    assert said.err.startswith("✗ interrupted")
    assert fakes.project.closed


def test_sigterm_ends_the_run_and_closes_the_project(fakes: Fakes) -> None:
    before = signal.getsignal(signal.SIGTERM)
    fakes.project.on_run = lambda: os.kill(os.getpid(), signal.SIGTERM)
    assert fakes.call("run", "orders").code == 143
    assert fakes.project.closed
    assert signal.getsignal(signal.SIGTERM) is before


def test_trouble_while_closing_does_not_fail_a_good_run(fakes: Fakes, monkeypatch: pytest.MonkeyPatch) -> None:
    def close() -> None:
        raise OSError("gone")

    monkeypatch.setattr(fakes.project, "close", close)
    said = fakes.call("run", "orders")
    assert (said.code, said.err) == (0, "! could not close: OSError: gone\n")


def test_status_and_history(fakes: Fakes) -> None:
    for name in ("orders", "events"):
        fakes.project.statuses[name] = PipelineStatus(
            name, "ok", fakes.MARK, None, fakes.record(name), 9_986, 0, "fenced", intent=False
        )
    assert "orders    ok      2026-11-15 10:00:41    –" in fakes.call("status").out
    assert [form["health"] for form in json.loads(fakes.call("status", "--json").out)] == ["ok", "ok"]

    assert fakes.call("history", "orders").out == "orders never ran: floodmark run orders\n"
    fakes.project.store.states["orders"] = fakes.state()
    assert "keeps no runs" in fakes.call("history", "orders").out
    fakes.project.records = [fakes.record(), fakes.record()]
    said = fakes.call("history", "orders", "-n", "1")
    assert said.out.startswith("runs of orders\nstarted")
    assert "\nwindows of orders\nload  state" in said.out
    form = json.loads(fakes.call("history", "orders", "--json").out)
    assert (len(form["runs"]), len(form["windows"]), form["gaps"]) == (2, 1, [])


def test_status_of_one_does_not_hide_the_other(fakes: Fakes) -> None:
    fakes.project.statuses = {
        "orders": SourceError("down"),
        "events": PipelineStatus("events", "never ran", None, None, None, 0, None, "", intent=False),
    }
    said = fakes.call("status")
    assert said.code == 1
    assert "events    never ran" in said.out
    assert said.err == "✗ orders  down\n"


def test_validate_and_schema(fakes: Fakes) -> None:
    assert fakes.call("validate").out == "✓ floodmark.yml  2 pipelines (orders, events), 2 connections\n"
    assert json.loads(fakes.call("validate", "--json").out)["valid"] is True
    assert json.loads(fakes.call("schema").out) == {"type": "object"}
    fakes.load_error = ConfigError("wrong")
    said = fakes.call("validate", "--json")
    assert (said.code, json.loads(said.out)["valid"]) == (2, False)


def test_usage_errors_are_2_and_the_version_is_told(fakes: Fakes) -> None:
    assert fakes.call("run", "--max-slices", "0").code == 2
    assert fakes.call("rnu").code == 2
    assert fakes.call("--version").out.startswith("floodmark 0.")


def test_what_the_caller_must_keep_is_a_line_of_its_own_also_after_a_failure(fakes: Fakes) -> None:
    fakes.project.kept = {"FLOODMARK_STATE": '{"format":1}'}
    fakes.project.results["orders"] = fakes.result(success=False, errors=("it broke",))
    said = fakes.call("run", "orders")
    assert said.code == 1
    assert said.out.splitlines()[-1] == 'FLOODMARK_STATE={"format":1}'
    as_json = fakes.call("run", "orders", "--json")
    assert json.loads(as_json.out)[-1]["keep"] == fakes.project.kept
    assert 'FLOODMARK_STATE={"format":1}' in as_json.err.splitlines()


@pytest.mark.parametrize("told", ["a minute", "-1", "nan", "inf"])
def test_a_patience_that_is_no_number_of_seconds_is_told_before_anything_runs(
    fakes: Fakes, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    monkeypatch.setenv("FLOODMARK_STOP_PATIENCE", told)
    said = fakes.call("run", "orders")
    assert said.code == 2
    assert said.out == ""
    assert said.err.splitlines() == [
        f"✗ FLOODMARK_STOP_PATIENCE is {told!r}, which is no number of seconds",
        "  give seconds, such as FLOODMARK_STOP_PATIENCE=60, or leave it out for 20",
    ]
