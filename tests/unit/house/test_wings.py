"""Who asks "vertical or horizontal?" or "which role?": the two wings, and few others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROOMS = ("clients", "coordinator", "services", "vflens")  # a plug-in may be made for a setting or a role
WINGS = {"vertical", "horizontal"}
MOST = 15


def _files(*, wings: bool = False) -> list[Path]:
    """The files of the rooms: outside the two wings, or in them."""
    files = (file for room in ROOMS for file in (ROOT / room).rglob("*.py"))
    return [f for f in files if bool(WINGS & {*f.relative_to(ROOT).parts, f.stem}) is wings]


@cache
def _kinds() -> set[str]:
    """The classes of the wings: each is of one setting or one role."""
    nodes = [n for f in _files(wings=True) for n in ast.walk(ast.parse(f.read_text(encoding="utf-8")))]
    return {n.name for n in nodes if isinstance(n, ast.ClassDef)}


def _names_a_member(node: ast.AST) -> bool:
    """Whether ``node`` names a role or a setting."""
    attributes = (n for n in ast.walk(node) if isinstance(n, ast.Attribute))
    found = {(a.value.id, a.attr) for a in attributes if isinstance(a.value, ast.Name)}
    return any(kind in ("Role", "Setting") and name.isupper() and name != "OPERATOR" for kind, name in found)


def _asks(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
        named = {getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(node.args[1])}
        return bool(named & _kinds())
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "holds":
        return any(map(_names_a_member, node.args))
    if isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
        words = {p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)}
        return any(map(_names_a_member, parts)) or bool(words & WINGS)
    return False


def _branches(text: str) -> Iterator[int]:
    """The lines of ``text`` that ask."""
    yield from sorted({n.lineno for n in ast.walk(ast.parse(text)) if isinstance(n, ast.expr) and _asks(n)})


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(config, ActiveConfig)",
        "isinstance(party, active.ActiveParty | None)",
        "party.role is Role.CLIENT",
        'kind = A if "horizontal" in settings else B',
        "run.holds(Role.COORDINATOR)",
        "operates = {one.role, other.role} == {Role.OPERATOR, Role.ACTIVE}",
    ],
)
def test_a_branch_is_counted(line: str) -> None:
    assert list(_branches(line)) == [1]


def test_few_ask_for_the_setting_or_a_role() -> None:
    files = _files()
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in files
        for line in _branches(file.read_text(encoding="utf-8"))
    ]
    assert len(files) > 250
    assert len(found) <= MOST, found
