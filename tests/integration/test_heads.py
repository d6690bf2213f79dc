"""Ledger against target: whatever happened to either is noticed before anything is read."""

from __future__ import annotations

import shutil

import pytest
from tests.lab import Lab, ok

from floodmark.errors import Refused
from floodmark.project import Project


@pytest.fixture
def loaded(server_lab: Lab) -> tuple[Lab, Project]:
    """Three commits: ids 1-10, 11-20, 21-30."""
    project = server_lab.project(mode="append")
    for start in (1, 11, 21):
        server_lab.fill(10, start=start)
        assert ok(project.run("orders")).rows.inserted == 10
    return server_lab, project


def refused(project: Project, words: str) -> str:
    """The run refuses, reads nothing and names the ways out."""
    result = project.run("orders")
    assert isinstance(result.failure, Refused), result.failure
    assert words in result.errors[0]
    assert "read" not in result.seconds
    assert "load" not in result.seconds
    assert result.failure.hint is not None
    assert "--full-refresh" in result.failure.hint
    return result.failure.hint


def test_after_a_restore_the_lost_windows_load_again(loaded: tuple[Lab, Project]) -> None:
    """Delta remembers transaction ids across a RESTORE: reused ordinals would be skipped in silence."""
    lab, project = loaded
    assert lab.spark is not None
    versions = [w.ordinal for w in project.store.get("orders").windows]  # type: ignore[union-attr]
    assert versions == [1, 2, 3]
    lab.spark.sql(f"RESTORE TABLE delta.`{lab.table}` TO VERSION AS OF 2").collect()
    assert len(lab.target_rows()) == 20
    lab.fill(5, start=31)
    result = ok(project.run("orders"))
    assert result.rows.inserted == 15
    assert "taken back to version 2" in result.notices[0]
    lab.assert_equal()
    assert ok(project.run("orders")).nothing_new


def test_a_target_that_was_dropped_is_refused_and_a_full_refresh_mends_it(loaded: tuple[Lab, Project]) -> None:
    lab, project = loaded
    shutil.rmtree(lab.table)
    refused(project, "is gone")
    assert ok(project.run("orders", full_refresh=True)).rows.inserted == 30
    lab.assert_equal()
    assert ok(project.run("orders")).nothing_new


def test_a_target_that_was_dropped_and_created_again_is_refused(loaded: tuple[Lab, Project]) -> None:
    lab, project = loaded
    assert lab.spark is not None
    rows = lab.spark.read.format("delta").load(lab.table).collect()
    shutil.rmtree(lab.table)
    lab.spark.createDataFrame(rows).write.format("delta").save(lab.table)
    refused(project, "dropped and created again")


def test_a_target_that_was_emptied_is_refused(loaded: tuple[Lab, Project]) -> None:
    lab, project = loaded
    assert lab.spark is not None
    lab.spark.sql(f"DELETE FROM delta.`{lab.table}`").collect()
    refused(project, "was emptied by somebody else (DELETE at version 4)")


def test_an_emptied_target_is_refused_even_when_the_state_is_gone(loaded: tuple[Lab, Project]) -> None:
    """Rebuilt from the target's history, the mark would leave all earlier rows out for ever."""
    lab, project = loaded
    assert lab.spark is not None
    lab.spark.sql(f"DELETE FROM delta.`{lab.table}`").collect()
    project.store.delete("orders")
    refused(project, "was emptied by somebody else (DELETE at version 4), while its own history says")


def test_rows_deleted_by_somebody_else_are_their_business(loaded: tuple[Lab, Project]) -> None:
    lab, project = loaded
    assert lab.spark is not None
    lab.spark.sql(f"DELETE FROM delta.`{lab.table}` WHERE id = 3").collect()
    lab.spark.sql(f"OPTIMIZE delta.`{lab.table}`").collect()
    lab.fill(1, start=31)
    assert ok(project.run("orders")).rows.inserted == 1


def test_an_older_copy_of_the_state_takes_over_what_the_target_holds(pg_lab: Lab) -> None:
    project = pg_lab.project(mode="append")
    pg_lab.fill(10)
    ok(project.run("orders"))
    project.close()
    shutil.copytree(pg_lab.root, pg_lab.root.with_name("copy"), ignore=shutil.ignore_patterns("lake"))
    for start in (11, 21):
        project = pg_lab.project(mode="append")
        pg_lab.fill(10, start=start)
        ok(project.run("orders"))
        project.close()
    for part in pg_lab.root.glob("state.db*"):
        part.unlink()
    shutil.copy(pg_lab.root.with_name("copy") / "state.db", pg_lab.root / "state.db")
    project = pg_lab.project(mode="append")
    result = ok(project.run("orders"))
    assert result.nothing_new
    assert "the state is older than the target: took over its 2 newer commits" in result.notices
    pg_lab.fill(1, start=31)
    assert ok(project.run("orders")).rows.inserted == 1
    pg_lab.assert_equal()


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_deleted_state_is_rebuilt_from_the_target(server_lab: Lab, mode: str) -> None:
    project = server_lab.project(mode=mode, batch_rows=5)
    server_lab.series(12, "2026-01-01 10:00:00", "1 second")
    ok(project.run("orders"))
    before = project.store.get("orders")
    assert before is not None
    assert project.store.delete("orders")
    server_lab.fill(1, "2026-01-02 10:00:00", start=13)
    result = ok(project.run("orders"))
    assert result.rows.inserted == 1
    assert "the state was rebuilt from the target" in result.notices
    after = project.store.get("orders")
    assert after is not None
    assert after.head is not None
    assert before.head is not None
    assert after.head.ordinal == before.head.ordinal + 1
    server_lab.assert_equal()


def test_a_target_with_rows_and_no_known_window_is_refused(pg_lab: Lab) -> None:
    assert pg_lab.spark is not None
    pg_lab.fill(3)
    pg_lab.spark.sql("SELECT 7L AS id, 'theirs' AS val, now() AS updated_at").write.format("delta").save(pg_lab.table)
    project = pg_lab.project()
    hint = refused(project, "holds rows, but no window of this pipeline is known")
    assert "another table" in hint
    assert len(pg_lab.target_rows()) == 1
    assert ok(project.run("orders", full_refresh=True)).rows.inserted == 3
    pg_lab.assert_equal()


def test_state_in_the_target_needs_no_store(server_lab: Lab) -> None:
    """`state: target:` — the target's own commits are the ledger, and recognise a quiet source."""
    server_lab.state = "'target:'"
    for start in (1, 11):
        project = server_lab.project()
        server_lab.fill(10, start=start)
        assert ok(project.run("orders")).rows.inserted == 10
        assert ok(project.run("orders")).nothing_new
    server_lab.assert_equal()
    assert not (server_lab.root / "state.db").exists()
    assert project.status("orders").mark is not None
