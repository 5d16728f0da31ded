"""A docstring begins with its noun, and a variable is named by what it holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROOMS = ("attacks", "benchmarks", "clients", "coordinator", "defenses", "docs", "services", "tests", "vflens")
INVERTED, VAGUE = ("Of ", "As "), {"told", "said"}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def faults(text: str) -> Iterator[str]:
    """Where a docstring of ``text`` is inverted, or a name vague."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and (ast.get_docstring(node) or "").startswith(INVERTED):
            yield f"{getattr(node, 'lineno', 1)}: {ast.get_docstring(node)}"
        if isinstance(node, ast.arg) and node.arg in VAGUE:
            yield f"{node.lineno}: {node.arg}"
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE:
            yield f"{node.lineno}: {node.id}"


def test_docstrings_and_names_are_plain() -> None:
    files = {str(file.relative_to(ROOT)): file for room in ROOMS for file in (ROOT / room).rglob("*.py")}
    assert len(files) > 1000
    found = {name: list(faults(file.read_text(encoding="utf-8"))) for name, file in files.items()}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_an_inverted_docstring_and_a_vague_name_are_found() -> None:
    text = 'def f(told):\n    """Of rows the last."""\nclass A:\n    """As B."""\n    said = told\n'
    assert len(list(faults(text))) == 4
    assert list(faults('def f(rows):\n    """The last of rows."""\n    return rows\n')) == []
