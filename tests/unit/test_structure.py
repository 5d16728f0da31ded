"""Sizes that keep the code readable: files, functions, packages."""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("attacks", "clients", "coordinator", "defenses", "services", "vflens")
FILES = sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py"))
#: One file is one plug-in there: the folder is a registry.
REGISTRIES = {"attacks", "defenses", "vflens/datasets"}


def test_a_file_fits_a_head() -> None:
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert len(lengths) > 250
    assert median(lengths.values()) <= 100
    assert {str(file.relative_to(ROOT)): n for file, n in lengths.items() if n > 350} == {}


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body, without the docstring."""
    body = function.body[1:] if ast.get_docstring(function) and len(function.body) > 1 else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1


@pytest.mark.parametrize("room", ROOMS)
def test_a_function_fits_a_screen(room: str) -> None:
    long, seen = [], 0
    for file in (f for f in FILES if f.relative_to(ROOT).parts[0] == room):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                seen += 1
                if _length(node) > 40:
                    long.append(f"{file.name}:{node.name}: {_length(node)}")
    assert seen > 10
    assert long == []


def test_a_package_fits_a_shelf() -> None:
    folders = {file.parent for file in FILES} - {ROOT / name for name in REGISTRIES}
    modules = {f: len([m for m in f.glob("*.py") if m.name != "__init__.py"]) for f in folders}
    assert len(modules) > 20
    assert {str(f.relative_to(ROOT)): n for f, n in modules.items() if n > 15} == {}
