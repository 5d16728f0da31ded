"""What docs/site_hooks.py and docs/notebooks.py make of pages, before mkdocs sees them."""

from __future__ import annotations

import json
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
FRONT = (ROOT / "docs/index.md").read_text(encoding="utf-8")
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.ipynb"))


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module as mkdocs loads it: its neighbours can be imported."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    import site_hooks

    return site_hooks


@pytest.mark.parametrize(
    ("page", "link", "becomes"),
    [
        ("quickstart.md", "../examples/demo.toml", "repository/examples/demo.toml.md"),
        ("quickstart.md", "../README.md#install", "repository/README.md#install"),
        ("index.md", "attacks", "attacks/index.md"),
        ("index.md", "tutorials/neighbour.ipynb", "tutorials/neighbour.md"),
        ("attacks/ls.md", "../notation.md", "../notation.md"),
        ("attacks/ls.md", "errors.svg", "errors.svg"),
        ("repository/README.md", "docs/defenses", "../defenses/index.md"),
        ("repository/README.md", "docs/report.png", "../report.png"),
        ("repository/README.md", "CHANGELOG.md", "CHANGELOG.md"),
        ("repository/README.md", "LICENSE", "LICENSE.md"),
    ],
)
def test_a_link_leads_to_its_place_on_the_site(hooks: Any, page: str, link: str, becomes: str) -> None:
    assert hooks.relinked(f"see [it]({link}).", page) == f"see [it]({becomes})."


@pytest.mark.parametrize("link", ["https://example.org/a.md", "mailto:a@b.c", "#heading"])
def test_links_to_other_sites_and_within_a_page_stay(hooks: Any, link: str) -> None:
    assert hooks.relinked(f"[it]({link})", "audit.md") == f"[it]({link})"


def test_code_keeps_what_looks_like_a_link(hooks: Any) -> None:
    text = "```python\nf[a](b)\n```\n"
    assert hooks.relinked(text, "audit.md") == text


def test_files_outside_become_pages_with_all_that_they_link(hooks: Any) -> None:
    found = hooks.outside({"index.md": "[readme](../README.md)"})
    assert found["repository/README.md"].startswith("# VFLens\n")
    assert found["repository/CONTRIBUTING.md"].startswith("# Contributing\n")  # linked by the README
    example = (ROOT / "examples/own_csv.toml").read_text(encoding="utf-8")
    written = found["repository/examples/own_csv.toml.md"]
    assert written == f"# examples/own_csv.toml\n\n```toml\n{example}\n```\n"


def test_a_list_names_every_page_by_its_title(hooks: Any) -> None:
    pages = list((ROOT / "docs/defenses").glob("*.md"))
    assert hooks.listing("defenses").count("\n- [") == len(pages)
    assert "- [half*](half_star.md)" in hooks.listing("attacks")


def test_a_public_name_without_docstring_or_place_is_reported(
    hooks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = type("Silent", (), {})
    package = types.SimpleNamespace(__all__=["run", "Run", "unplaced"], run=len, Run=silent, unplaced=len)
    monkeypatch.setattr(hooks, "import_module", lambda name: package)
    assert hooks.undocumented() == ["Run", "unplaced"]


def test_every_public_name_is_documented(hooks: Any) -> None:
    assert hooks.undocumented() == []


def test_a_role_of_a_docstring_is_shown_as_its_name(hooks: Any) -> None:
    html = "see :class:<code>~vflens.api.runs.Run</code> and <code>ls</code>"
    assert hooks.on_page_content(html, None, None, None) == "see <code>Run</code> and <code>ls</code>"


def test_a_page_that_fetches_from_another_site_is_found(hooks: Any) -> None:
    for fetched in (
        '<script src="https://unpkg.com/shim">',
        '<link rel="stylesheet" href="//fonts.example/css">',
    ):
        assert hooks._FETCHED.search(f"<head>{fetched}</head>")
    assert not hooks._FETCHED.search('<a href="https://example.org">x</a><script src="assets/a.js">')


def test_cells_become_text_code_and_what_it_gave(hooks: Any) -> None:
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": "hel"},
        {"output_type": "stream", "name": "stdout", "text": "lo\n"},
        {"output_type": "execute_result", "data": {"text/plain": "1", "text/html": "<b>1</b>"}},
        {"output_type": "display_data", "data": {"image/png": "aGk=\n"}},
    ]
    cells = [
        {"cell_type": "markdown", "source": "# Title"},
        {"cell_type": "code", "source": "f()", "outputs": outputs},
    ]
    assert sys.modules["notebooks"].page({"cells": cells}) == "\n\n".join(
        [
            "# Title",
            "```python\nf()\n```",
            "```text\nhello\n```",
            '<div class="output"><b>1</b></div>',
            '<img alt="output" src="data:image/png;base64,aGk=">\n',
        ]
    )


@pytest.mark.parametrize("notebook", TUTORIALS, ids=lambda p: p.stem)
def test_tutorials_are_kept_without_outputs(notebook: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def _sections() -> dict[str, list[str]]:
    """The entries of each section of the navigation, in their order."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:", 1)[1]
    parts: list[dict[str, Any]] = yaml.safe_load(f"nav:{text}")["nav"]
    return {title: _entries(entries) for part in parts for title, entries in part.items()}


def _entries(within: Any) -> list[str]:
    if isinstance(within, dict):
        within = [*within.values()]
    return [within] if isinstance(within, str) else [e for part in within for e in _entries(part)]


def _navigation() -> list[str]:
    return [entry for entries in _sections().values() for entry in entries]


def _named(heading: str) -> set[str]:
    """The places on the site of the pages that the front page names under ``heading``."""
    body = FRONT.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    pages: list[str] = re.findall(r"\]\(([\w/-]+\.(?:md|ipynb))\)", body)
    return {page.replace(".ipynb", ".md") for page in pages}


def test_every_page_is_in_the_navigation() -> None:
    pages = [p.name for p in (ROOT / "docs").glob("*.md")]
    pages += [f"tutorials/{notebook.stem}.md" for notebook in TUTORIALS]
    assert sorted(pages) == sorted(entry for entry in _navigation() if not entry.endswith("/*"))


def test_tutorials_stand_in_the_navigation_as_the_front_page_names_them() -> None:
    named = re.findall(r"\((tutorials/\w+)\.ipynb\)", FRONT.split("- Tutorials, ", 1)[1])
    assert len(named) == len(TUTORIALS)
    assert [entry for entry in _navigation() if entry.startswith("tutorials/")] == [f"{n}.md" for n in named]


DOORS = ("Should I join?", "I have an attack", "I run a party")


def test_navigation_and_front_page_part_the_doors_from_what_developers_need() -> None:
    listed = {entry for entry in _sections()["For developers"] if not entry.endswith("/*")}
    assert listed == _named("For developers") - {"adr/README.md"}
    others = {e for title, entries in _sections().items() if title != "For developers" for e in entries}
    assert others - {"index.md"} == set().union(*map(_named, (*DOORS, "References")))


def test_the_three_doors_their_references_and_the_tutorials_have_250_kb_at_most() -> None:
    pages = set().union(*map(_named, (*DOORS, "References")))
    files = [ROOT / "docs" / page for page in pages]
    assert len(files) > 20
    sizes = {f.name: (f if f.exists() else f.with_suffix(".ipynb")).stat().st_size for f in files}
    assert sum(sizes.values()) <= 250_000, sizes


def test_guides_weigh_more_in_a_search_than_decisions_and_sources(hooks: Any) -> None:
    guides = [hooks.weight(page) for page in ("index.md", "audit.md", "tutorials/audit.md")]
    plugins = [hooks.weight(page) for page in ("attacks/ls.md", "defenses/cae.md")]
    others = [hooks.weight(page) for page in ("adr/0001-a.md", "repository/LICENSE.md")]
    assert min(guides) > max(plugins) > max(others) > 0.0
