"""The parts of the demo that need no Spark; the whole of it is an end-to-end test."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from floodmark.cli.demo_shop import TIED, Shop, Trade
from floodmark.cli.demo_story import Story
from floodmark.cli.demo_verdict import Verdict, compare, source_rows
from floodmark.cli.output import Output
from floodmark.cli.session import Session
from floodmark.model.outcome import Rows

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Fakes


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path / "shop.db")
    shop.open(orders=41_000, events=50)
    return shop


def test_the_shop_has_ties_where_a_slice_would_end(shop: Shop) -> None:
    with closing(sqlite3.connect(shop.path)) as db:
        top = db.execute("SELECT count(*) FROM orders GROUP BY updated_at ORDER BY 1 DESC LIMIT 1").fetchone()[0]
        old = db.execute("SELECT max(updated_at) < datetime('now', '-1 minute') FROM orders").fetchone()[0]
    assert (top, old) == (len(TIED), 1)


def test_a_trade_counts_what_it_really_changed(shop: Shop) -> None:
    before = source_rows(shop.path, "orders")
    trade = shop.trade(updates=120, ties=30, inserts=31, events=2)
    after = source_rows(shop.path, "orders")
    assert (trade.updated, trade.inserted, trade.events) == (150, 31, 2)
    assert after.total() - before.total() == trade.inserted
    assert (before - after).total() == trade.updated
    assert source_rows(shop.path, "events").total() == 52


def test_a_row_that_is_missing_extra_or_doubled_is_a_difference() -> None:
    same: Counter[tuple[object, ...]] = Counter({(1, "a"): 1, (2, "b"): 1})
    assert compare("orders", same, same) == []
    assert compare("orders", same, same + Counter({(1, "a"): 1})) == ["orders: extra in target  1, a"]
    assert compare("orders", same, Counter({(1, "a"): 1})) == ["orders: missing in target  2, b"]


def test_the_verdict_in_words() -> None:
    rows = {"orders": 100_312, "events": 5_020}
    assert Verdict(rows, ()).text == "✓ 100,312 orders and 5,020 events: source and target are equal, row by row"
    assert Verdict(rows, ("x",)).text == "✗ 100,312 orders and 5,020 events: source and target differ in 1 rows"


def test_a_folder_with_things_in_it_is_left_alone(fakes: Fakes, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    said = fakes.call("demo", "--dir", str(tmp_path))
    assert said.code == 2
    assert "is not empty" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(("good", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_is_the_verdict(
    fakes: Fakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, good: bool, code: int
) -> None:
    monkeypatch.setattr(Story, "tell", lambda _: good)
    assert fakes.call("demo", "--dir", str(tmp_path / "new")).code == code
    assert fakes.call("demo").code == code


@pytest.mark.parametrize(("reported", "sign"), [(1_500, "✓ just what"), (1_499, "✗ the shop counted")])
def test_a_report_that_differs_from_the_shops_own_count_is_told(
    fakes: Fakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reported: int, sign: str
) -> None:
    monkeypatch.chdir(tmp_path)
    fakes.project.results["orders"] = fakes.result(rows=Rows(1_812, 312, reported, 0))
    fakes.project.results["events"] = fakes.result("events", rows=Rows(20, 20, 0, 0))
    story = Story(Output(), Session(keeps_projects=True), tmp_path)
    story._compare_counts(Trade(updated=1_500, inserted=312, events=20), "run")
    assert fakes.capsys.readouterr().out.splitlines()[-1].startswith(sign)
