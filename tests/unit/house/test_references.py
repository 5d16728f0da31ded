"""What a docstring marks as a name of this package is one, and each method has or inherits one."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from inspect import get_annotations, isclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
ROOMS = ("attacks", "clients", "coordinator", "defenses", "services", "vflens")
FILES = sorted({file.resolve() for room in ROOMS for file in (ROOT / room).rglob("*.py")})
ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`~?([^`]+)`")


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(p for p in ("vflens", *parts)[parts[0] == "vflens" :] if p != "__init__")


def references(node: ast.AST, owner: str | None = None) -> Iterator[tuple[str, str | None]]:
    """Each marked name below ``node``, with the class that it stands in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            yield from ((name, owner) for name in ROLE.findall(str(child.value.value)))
        yield from references(child, child.name if isinstance(child, ast.ClassDef) else owner)


@cache
def fields(of: type) -> set[str]:
    """What an object of this class has: members, annotated names, and what its methods set."""
    found = set(dir(of))
    for base in of.__mro__:
        found |= set(get_annotations(base))
        if base.__module__.startswith("vflens"):
            file = importlib.import_module(base.__module__).__file__
            found |= set(re.findall(r"self\.(\w+)", Path(file or "").read_text(encoding="utf-8")))
    return found


def resolves(name: str, module: str, owner: str | None) -> bool:
    """Whether ``name`` is a whole path, a member of the class it stands in, or a name of its module."""
    here = importlib.import_module(module)
    if owner and hasattr(here, owner) and name in fields(getattr(here, owner)):
        return True
    path = name if name.startswith("vflens") else f"{module}.{name}"
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        break
    for part in parts[end:]:
        if not hasattr(found, part):
            return isinstance(found, type) and part in fields(found)
        found = getattr(found, part)
    return True


def unresolved(file: Path) -> tuple[int, list[str]]:
    """How many names the docstrings of ``file`` mark, and those that are none."""
    marked = list(references(ast.parse(file.read_text(encoding="utf-8"))))
    module = module_of(file)
    return len(marked), [name for name, owner in marked if not resolves(name, module, owner)]


@pytest.mark.parametrize("room", ROOMS)
def test_every_marked_name_exists(room: str) -> None:
    files = [file for file in FILES if file.relative_to(ROOT).parts[0] == room and "protos" not in file.parts]
    found = {str(file.relative_to(ROOT)): unresolved(file) for file in files}
    assert sum(marked for marked, _ in found.values()) > 5
    assert {file: names for file, (_, names) in found.items() if names} == {}


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("vflens.types.Progress", True),
        ("vflens.types.NoSuch", False),
        ("vflens.types.Role.NO", False),
        ("change", True),
        ("SvmPoint.slack", True),
        ("SvmPoint.no", False),
    ],
)
def test_a_name_resolves_as_it_is_written(name: str, known: bool) -> None:
    assert resolves(name, "vflens.table_noise.svm", "SvmSolution") is known


def undocumented(module: ModuleType) -> tuple[int, list[str]]:
    """How many public methods the public classes of ``module`` have, and which neither have a docstring
    nor override a method that has one; the name of a test says what it is.
    """
    owned = [
        thing for thing in vars(module).values() if isclass(thing) and thing.__module__ == module.__name__
    ]
    methods = [
        (owner, name)
        for owner in owned
        if not owner.__name__.startswith("_")
        for name, value in vars(owner).items()
        if not name.startswith(("_", "test_")) and name not in get_annotations(owner) and function_of(value)
    ]
    return len(methods), [f"{owner.__name__}.{name}" for owner, name in methods if not explained(owner, name)]


def function_of(member: Any) -> Any:
    """The function that was written for a method, property or class method; None of other members."""
    for wrapped in ("fget", "func", "__func__"):
        member = getattr(member, wrapped, member)
    return member if hasattr(member, "__code__") else None


def explained(owner: type, name: str) -> bool:
    found = [function_of(vars(base)[name]) for base in owner.__mro__ if name in vars(base)]
    return any(function.__doc__ for function in found if function is not None)


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_method_has_or_inherits_a_docstring(room: str) -> None:
    files = [file for file in FILES if file.relative_to(ROOT).parts[0] == room and "protos" not in file.parts]
    found = {
        str(file.relative_to(ROOT)): undocumented(importlib.import_module(module_of(file))) for file in files
    }
    assert sum(methods for methods, _ in found.values()) > 5
    assert {file: names for file, (_, names) in found.items() if names} == {}


def test_a_method_without_any_docstring_is_found() -> None:
    module = ModuleType("made")
    code = "class A:\n def f(self):\n  'Why.'\n @property\n def g(self): ...\nclass B(A):\n def f(self): ..."
    exec(code, vars(module))
    assert undocumented(module) == (3, ["A.g"])
