"""The warm Spark that a run leaves behind: entered by the next one, and whatever dies, the run after that works."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.test_stop import SLOW, is_there, said
from tests.lab import Lab
from tests.services import run_cli, start_faulty, wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESIDENT = "{resident: on, idle: 5m}"


@pytest.fixture
def warm_lab(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """Its keepers meet nobody else's, and are gone afterwards."""
    meeting = Path(tempfile.mkdtemp(prefix="fm-"))  # a socket's path has to be short
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(meeting))
    lab = Lab(tmp_path / "project", "sqlite", "", spark)
    yield lab
    run_cli("spark", "stop", "--all", "--now", cwd=lab.root)
    wait_for(lambda: not residents(lab), "the keepers to end", 30)
    shutil.rmtree(meeting)


def declare(lab: Lab, spark: str = RESIDENT, **changes: str) -> None:
    lab.own_spark = spark
    lab.write(batch_rows=10_000, **changes)


def residents(lab: Lab) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run_cli("spark", "status", "--json", cwd=lab.root).stdout)
    return found


def only(lab: Lab) -> dict[str, Any]:
    (found,) = residents(lab)
    return found


def touch(lab: Lab, day: int) -> None:
    lab.execute(f"UPDATE orders SET val = 'day {day}', updated_at = '2026-02-{day:02} 10:00:00' WHERE id <= 5")


def rows(lab: Lab) -> list[tuple[Any, ...]]:
    return [row[:2] for row in lab.target_rows()]


def source(lab: Lab) -> list[tuple[Any, ...]]:
    return [row[:2] for row in lab.source_rows()]


def test_the_next_run_enters_it_with_a_world_of_its_own(warm_lab: Lab) -> None:
    lab = warm_lab
    lab.fill(20)
    lab.insert((21, "the mark stays here", "2026-01-02 10:00:00"))
    declare(lab, transform="{sql: \"select id, concat(val, '${MARK}') as val, updated_at from source\"}")
    first = run_cli("run", "orders", "--var", "MARK=!", cwd=lab.root)
    assert "21 inserted" in first.stdout
    warm = only(lab)
    assert (warm["runs"], warm["busy"], warm["project"]) == (1, [], str(lab.root))
    assert Path(warm["log"]).is_file()
    assert warm["ends_in"] > 0
    touch(lab, 2)
    run_cli("run", "orders", "--var", "MARK=?", cwd=lab.root)
    again = only(lab)
    assert (again["java"], again["runs"]) == (warm["java"], 2), "another JVM"
    marks = [val[-1] for _, val in rows(lab)]
    assert (marks[:5], marks[5:20]) == (["?"] * 5, ["!"] * 15)
    shown = run_cli("spark", "status", cwd=lab.root).stdout
    assert "idle, ends in" in shown
    assert "✓ stopped" in run_cli("spark", "stop", cwd=lab.root).stdout
    wait_for(lambda: not is_there(warm["pid"]) and not is_there(warm["java"]), "both to end")
    assert "no warm Spark" in run_cli("spark", "stop", cwd=lab.root).stdout
    assert "no warm Spark" in run_cli("spark", "status", cwd=lab.root).stdout


def test_another_configuration_has_one_of_its_own_and_an_idle_one_makes_room(warm_lab: Lab) -> None:
    lab = warm_lab
    lab.fill(3)
    declare(lab)
    run_cli("run", "orders", cwd=lab.root)
    before = only(lab)
    touch(lab, 3)
    declare(lab, "{resident: on, idle: 2s, config: {spark.sql.shuffle.partitions: 3}}")
    run_cli("run", "orders", cwd=lab.root)
    wait_for(lambda: not is_there(before["java"]), "the idle one to make room")
    # And the new one ends by itself, since nobody comes any more.
    wait_for(lambda: not residents(lab), "the end of its idle time")
    assert rows(lab) == source(lab)


@pytest.mark.parametrize("victim", ["keeper", "java", "caller"])
def test_whoever_is_killed_in_the_middle_of_a_load_the_next_run_works(warm_lab: Lab, victim: str) -> None:
    lab = warm_lab
    lab.fill(2000)
    declare(lab, transform=SLOW)
    process = start_faulty("run", "orders", cwd=lab.root)
    wait_for(lambda: "load started" in said(lab), "the load")
    wait_for(lambda: (Path(lab.table) / "_delta_log").exists(), "the table")
    warm = only(lab)
    assert warm["busy"] == [process.pid]
    os.kill({"keeper": warm["pid"], "java": warm["java"], "caller": process.pid}[victim], signal.SIGKILL)
    assert process.wait(timeout=60) == (1 if victim != "caller" else -signal.SIGKILL), said(lab)
    wait_for(lambda: not is_there(warm["pid"]) and not is_there(warm["java"]), "all of it to end")
    assert "Traceback" not in said(lab)
    if victim != "caller":
        assert "Spark ended in the middle of the work" in said(lab)
    declare(lab)
    run_cli("run", "orders", cwd=lab.root)
    assert rows(lab) == source(lab)


def test_ctrl_c_stops_the_callers_own_run_only(warm_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    # A run that does not end in time takes its Spark along; on a busy machine it may need its time.
    monkeypatch.setenv("FLOODMARK_STOP_PATIENCE", "120")
    lab = warm_lab
    lab.fill(1000)
    declare(lab, transform=SLOW)
    text = (lab.root / "floodmark.yml").read_text()
    second = text.partition("pipelines:\n")[2].replace("  orders:", "  copies:", 1)
    second = second.replace("lake, table: orders", "lake, table: copies")
    (lab.root / "floodmark.yml").write_text(text + second)
    one = start_faulty("run", "orders", cwd=lab.root)
    wait_for(lambda: "load started" in said(lab), "the first load")
    other = subprocess.Popen(
        [*command_line(), "run", "copies"], cwd=lab.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    wait_for(lambda: len(only(lab)["busy"]) == 2, "the second run to enter")
    wait_for(lambda: (lab.root / "lake" / "copies" / "_delta_log").exists(), "the second load")
    one.send_signal(signal.SIGINT)
    assert one.wait(timeout=150) == 130, said(lab)
    output, _ = other.communicate(timeout=200)
    assert other.returncode == 0, output
    assert "1,000 inserted" in output
    assert only(lab)["busy"] == []


def command_line() -> list[str]:
    return [str(Path(sys.executable).with_name("floodmark"))]


def test_where_no_keeper_can_be_reached_spark_starts_in_the_run_itself(
    warm_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = warm_lab
    lab.fill(3)
    declare(lab)
    open_to_all = Path(os.environ["XDG_RUNTIME_DIR"]) / "shared"
    (open_to_all / "floodmark").mkdir(parents=True)
    (open_to_all / "floodmark").chmod(0o777)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_RUNTIME_DIR", str(open_to_all))
        assert "3 inserted" in run_cli("run", "orders", cwd=lab.root).stdout
        assert list((open_to_all / "floodmark").iterdir()) == []
    assert not residents(lab)
