"""Sizes that keep the code readable: files, functions, packages."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[3]
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


def _repeated(names: Iterable[str]) -> list[str]:
    found = sorted(names)
    assert len(found) > 20
    return [one for one, other in pairwise(found) if one == other]


def _classes(file: Path) -> set[str]:
    """The public classes that ``file`` defines; what extends a class of its own name is its public face."""
    nodes = [n for n in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(n, ast.ClassDef)]
    faces = {n.name for n in nodes if any(ast.unparse(b).endswith(f".{n.name}") for b in n.bases)}
    return {n.name for n in nodes if not n.name.startswith("_")} - faces


def test_a_class_has_a_name_of_its_own() -> None:
    assert _repeated(name for file in FILES for name in _classes(file)) == []


def _dataclasses() -> set[str]:
    nodes = (n for f in FILES for n in ast.walk(ast.parse(f.read_text(encoding="utf-8"))))
    found = (n for n in nodes if isinstance(n, ast.ClassDef))
    return {n.name for n in found if any("dataclass" in ast.unparse(d) for d in n.decorator_list)}


def test_a_record_of_many_fields_is_made_by_their_names() -> None:
    records, long, seen = _dataclasses(), [], 0
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in records:
                seen += 1
                if len(node.args) > 4:
                    long.append(f"{file.name}:{node.lineno}: {node.func.id}")
    assert seen > 200
    assert long == []


@pytest.mark.parametrize("wing", ["vertical", "horizontal"])
def test_a_file_has_a_name_of_its_own_in_its_wing(wing: str) -> None:
    files = (f for f in FILES if f.parent.name == wing and f.name != "__init__.py")
    assert _repeated(f.stem for f in files) == []


def test_tests_of_a_room_lie_in_a_folder_of_its_name() -> None:
    unit = ROOT / "tests/unit"
    folders = {str(file.parent.relative_to(unit)) for file in unit.rglob("*.py")} - {"house"}
    assert len(folders) > 20
    assert sorted(name for name in folders if not (ROOT / "vflens" / name / "__init__.py").exists()) == []


def test_a_file_of_tests_has_400_lines_at_most() -> None:
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert len(files) > 300
    lengths = {str(f.relative_to(ROOT)): len(f.read_text(encoding="utf-8").splitlines()) for f in files}
    assert {name: lines for name, lines in lengths.items() if lines > 400} == {}
