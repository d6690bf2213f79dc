"""State in a bucket: the server's conditions, lost answers, and errors in words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import obstore
import pytest
from tests.objects import S3Server
from tests.services import free_port

from floodmark.errors import StateConflict, StateError
from floodmark.state import objects
from floodmark.state.objects import ObjectStore
from floodmark.testing.store_suite import a_run, a_state, an_owner


@pytest.fixture
def url(s3_bucket: str) -> str:
    return f"{s3_bucket}/team/state.json"


def test_the_server_of_these_tests_enforces_conditions(s3: S3Server, s3_bucket: str) -> None:
    """Without this the race tests would prove nothing."""
    path = f"{s3_bucket.removeprefix('s3://')}/x"
    assert s3.request("PUT", path, b"1", {"If-Match": '"no such"'})[0] in (404, 412)
    assert s3.request("PUT", path, b"1", {"If-None-Match": "*"})[0] == 200
    assert s3.request("PUT", path, b"2", {"If-None-Match": "*"})[0] == 412
    assert s3.request("PUT", path, b"2", {"If-Match": '"no such"'})[0] == 412
    assert s3.request("GET", path)[1] == b"1"


def test_it_is_one_object_with_the_form_of_the_file(s3: S3Server, s3_bucket: str, url: str) -> None:
    ObjectStore(url).save(a_state())
    status, body = s3.request("GET", f"{s3_bucket.removeprefix('s3://')}/team/state.json")
    assert (status, body[:12]) == (200, b'{"format":1,')


def test_a_lost_race_is_run_again_and_a_stale_state_still_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store, other = ObjectStore(url), ObjectStore(url)
    saved = store.save(a_state())
    put, taken = obstore.put, []

    def slower(*args: object, **options: object) -> object:
        monkeypatch.setattr(obstore, "put", put)
        taken.append(other.acquire("t", an_owner()))
        return put(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(obstore, "put", slower)
    assert store.save(saved.but(run_count=8)).revision == 2
    assert [store.holder("t")] == taken
    with pytest.raises(StateConflict):
        store.save(saved)


def test_a_put_whose_answer_got_lost_is_recognised_as_our_own(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client sends it again by itself, and is refused because of its own first one."""
    store = ObjectStore(url)
    saved = store.save(a_state())
    put = obstore.put

    def twice(*args: object, **options: object) -> object:
        put(*args, **options)  # type: ignore[arg-type]
        return put(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(obstore, "put", twice)
    again = store.save(saved.but(run_count=8))
    lease = store.acquire("t", an_owner())
    assert (again.revision, lease.epoch) == (2, 1)
    assert store.get("orders") == again
    assert store.beat(lease).beat == 1


def test_fewer_runs_are_kept_than_in_a_file(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "KEPT_RUNS", 3)
    store = ObjectStore(url)
    for number in range(5):
        store.record_run(a_run(number))
    assert [run.run_id for run in store.runs("orders")] == ["r4", "r3", "r2"]


def test_a_damaged_object_is_named_and_left_alone(s3: S3Server, s3_bucket: str, url: str) -> None:
    path = f"{s3_bucket.removeprefix('s3://')}/team/state.json"
    s3.request("PUT", path, b'{"format": 1, "pipe')
    actions: list[Callable[[], object]] = [
        lambda: ObjectStore(url).get("orders"),
        lambda: ObjectStore(url).save(a_state()),
    ]
    for action in actions:
        with pytest.raises(StateError, match=r"s3://.*state\.json is damaged"):
            action()
    assert s3.request("GET", path)[1] == b'{"format": 1, "pipe'


def test_a_missing_bucket_is_said(s3_bucket: str) -> None:
    store = ObjectStore("s3://nowhere/state.json")
    actions: list[Callable[[], object]] = [lambda: store.get("orders"), lambda: store.save(a_state())]
    for action in actions:
        with pytest.raises(StateError, match="no such bucket"):
            action()


def test_a_server_that_is_away_is_transient_and_no_secret_is_shown() -> None:
    store = ObjectStore(
        "s3://bucket/state.json",
        wait=timedelta(milliseconds=300),
        endpoint=f"http://127.0.0.1:{free_port()}",
        access_key_id="me",
        secret_access_key="s3cret-pw",
    )
    with pytest.raises(StateError, match=r"s3://bucket/state\.json can't be read") as caught:
        store.get("orders")
    assert caught.value.transient
    assert "s3cret" not in f"{caught.value} {caught.value.hint}"
    assert "\n" not in caught.value.message
