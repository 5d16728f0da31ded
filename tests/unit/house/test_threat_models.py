"""The page of threat models: each promise names the tests that hold it, and every named test exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from nonempty import nonempty

ROOT = Path(__file__).parents[3]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
THREATS = (ROOT / "docs/threat-models.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w./-]+)?((?:::\w+)*)`")
ADVERSARIES = ("A stranger on the network", "A malicious peer", "A restarted party", "A stolen folder")


@cache
def names_in(file: Path) -> frozenset[str]:
    """The names of the tests of ``file``, and of their classes: "TestLink", "TestLink::test_it"."""
    found = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            found.add(node.name)
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            inner = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
            found |= {node.name, *(f"{node.name}::{n}" for n in inner if n.startswith("test_"))}
    return frozenset(found)


def exists(path: str, name: str) -> bool:
    """Whether a page may name ``name`` ("" or "::test_it") of ``path``."""
    file = ROOT / path
    return file.exists() and (not name or name.removeprefix("::") in names_in(file))


def section(heading: str) -> str:
    return THREATS.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def promises(text: str) -> list[list[str]]:
    """The cells of each row of the tables whose last column is "test"."""
    rows: list[list[str]] = []
    for table in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        head, _, *body = [[c.strip() for c in line.strip("|").split("|")] for line in table.splitlines()]
        rows += body if head[-1] == "test" else []
    return rows


def named(text: str) -> list[tuple[str, str]]:
    """The tests that a page names: file and function; a function alone is of the file named last."""
    found, last = [], ""
    for path, name in NAMED.findall(text):
        last = path or last
        found += [(last, name)] if path or name else []
    return found


@pytest.mark.parametrize(
    "page", [p for p in PAGES if named(p.read_text("utf-8"))], ids=lambda p: str(p.relative_to(ROOT))
)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    tests = nonempty(named(page.read_text(encoding="utf-8")))
    assert [path + name for path, name in tests if not exists(path, name)] == []


def test_a_name_alone_is_of_the_file_named_last() -> None:
    text = "`tests/a.py::test_it`, `vflens`, ``, `::test_one`; `tests/b.py` and `::TestIt::test_two`"
    tests = ["::test_it", "::test_one", "", "::TestIt::test_two"]
    assert named(text) == [*zip(["tests/a.py"] * 2 + ["tests/b.py"] * 2, tests, strict=True)]


def test_a_test_that_does_not_exist_is_found() -> None:
    here = "tests/unit/house/test_threat_models.py"
    assert exists(here, "")
    assert exists(here, "::test_a_test_that_does_not_exist_is_found")
    assert exists("tests/contract/test_link.py", "::TestLink::test_replies_come_back")
    assert not exists(here, "::test_that_is_not_there")
    assert not exists("tests/unit/test_nowhere.py", "")


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/certificates.md"])
def test_every_promise_of_other_pages_on_security_names_a_test(page: str) -> None:
    rows = promises((ROOT / page).read_text(encoding="utf-8"))
    assert len(rows) > 5
    assert [row[0] for row in rows if not re.search(r"::test_|::Test", row[-1])] == []


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_every_promise_names_a_test(adversary: str) -> None:
    """A row without a test promises nothing, and says so: "never"."""
    rows = promises(section(adversary))
    kept = [row for row in rows if re.search(r"::test_|::Test", row[-1])]
    withdrawn = [row for row in rows if row not in kept]
    assert len(kept) > 5
    assert [row for row in withdrawn if row[-1] != "–" or not row[1].startswith("never")] == []
