"""What the docs show works: each example runs as it stands, each option page says what the classes say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from tests.lab import Lab, ok

from floodmark.project import declare, load, validate

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    p for folder in ("sources", "changes", "targets", "state") for p in (ROOT / "docs" / folder).glob("*.md")
)


STATES = {"postgres": "pg_db", "mysql": "my_db", "bucket": "s3_bucket"}
"""The page of a store to the fixture that has its server."""


def example(page: Path) -> str:
    return str(re.findall(r"```yaml\n(.*?)```", page.read_text(), re.S)[0])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_the_example_of_a_page_runs(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = example(page)
    spark = request.getfixturevalue("spark")
    on_postgres = "type: postgres" in text
    url = request.getfixturevalue("pg_db") if on_postgres else ""
    lab = Lab(tmp_path / "project", "postgres" if on_postgres else "sqlite", url, spark)
    lab.fill(3)
    monkeypatch.setenv("SHOP_URL", url)
    if page.parent.name == "state" and page.stem in STATES:
        place = request.getfixturevalue(STATES[page.stem])
        monkeypatch.setenv("STATE_URL", f"{place}/state.json" if page.stem == "bucket" else place)
    path = lab.root / "floodmark.yml"
    path.write_text(text)
    project = load(path, spark=spark)
    ok(project.run("orders"))
    lab.assert_equal()
    project.close()


def test_the_readme_example_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "floodmark.yml"
    path.write_text(re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[0])
    monkeypatch.setenv("SHOP_URL", "postgresql://user:password@host/shop")
    spec = validate(path)
    assert list(spec.pipelines) == ["orders", "events"]


def test_a_project_declared_in_python_is_the_same_spec(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.S)
    declared = next(b for b in blocks if "floodmark.declare(" in b)
    mapping = eval(re.search(r"declare\(\s*(\{.*\}),\s*root=", declared, re.S)[1])  # type: ignore[index]  # noqa: S307
    path = tmp_path / "floodmark.yml"
    path.write_text(example(ROOT / "docs" / "sources" / "sqlite.md"))
    ours, theirs = declare(mapping, root=tmp_path).spec, validate(path)
    assert ours.model_dump() == theirs.model_dump()


def test_the_options_page_is_what_the_classes_say() -> None:
    page = runpy.run_path(str(ROOT / "scripts" / "write_options.py"))["page"]()
    assert (ROOT / "docs" / "options.md").read_text() == page, "run: python scripts/write_options.py"


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name}: {link}"
