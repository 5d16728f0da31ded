"""No test vanishes silently: by a deleted file, a lost prefix, or a second function of its name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from quick import ROOMS

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "vflens"
#: At least so many test functions; raise a number when tests were added, lower it only with the tests
#: removed.
MINIMUM = {
    "contract": 291,
    "e2e": 179,
    "faults": 12,
    "oracle": 238,
    "property": 18,
    "soak": 12,
    "unit": 595,
    "wire": 46,
}


def _tests(file: Path) -> list[str]:
    """The names of the test functions of a module, as pytest finds them."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    names = [n.name for n in found if not isinstance(n, ast.ClassDef)]
    for cls in (c for c in found if isinstance(c, ast.ClassDef) and c.name.startswith("Test")):
        names += [f"{cls.name}.{n.name}" for n in cls.body if isinstance(n, ast.FunctionDef)]
    return [name for name in names if name.rpartition(".")[2].startswith("test_")]


def _modules() -> list[Path]:
    return sorted(HERE.rglob("test_*.py"))


@pytest.mark.parametrize("folder", MINIMUM)
def test_no_folder_lost_its_tests(folder: str) -> None:
    assert sum(len(_tests(file)) for file in (HERE / folder).rglob("test_*.py")) >= MINIMUM[folder]


def test_every_folder_of_tests_has_a_minimum() -> None:
    assert {f.parent.name for f in _modules()} - {HERE.name} == set(MINIMUM)


def test_every_module_has_tests_with_names_of_their_own() -> None:
    for file in _modules():
        names = Counter(_tests(file))
        assert names, f"{file} holds no tests"
        assert max(names.values()) == 1, (
            f"{file}: the later of two tests called {names.most_common(1)} hides the first"
        )


def test_no_module_hides_another() -> None:
    """Without packages pytest imports modules by their stem: two of one name would be one."""
    stems = Counter(f.stem for f in HERE.rglob("*.py"))
    assert max(stems.values()) == 1, stems.most_common(1)


def test_quick_has_a_test_of_each_room() -> None:
    rooms = {".".join(file.parent.relative_to(PACKAGE).parts) for file in _sources("__init__.py")}
    rooms |= {file.stem for file in PACKAGE.glob("[!_]*.py")}
    assert set(ROOMS) == rooms - {""}


@pytest.mark.parametrize("room", ROOMS)
def test_quick_names_a_test_of_the_room(room: str) -> None:
    name, _, test = ROOMS[room].partition("::")
    assert test.replace("::", ".") in _tests(HERE / name)
    folder, _, module = f"vflens.{room}".rpartition(".")
    imported = rf"{folder}\.{module}\b|{folder} import .*\b{module}\b"
    assert re.search(imported, (HERE / name).read_text(encoding="utf-8")), f"{name} imports nothing of {room}"


def _sources(name: str) -> list[Path]:
    """The files of this name in the package; ``rglob`` follows no link, and the package has some."""
    folders = [PACKAGE, *(folder for folder in PACKAGE.iterdir() if folder.is_symlink())]
    return [file for folder in folders for file in folder.rglob(name)]
