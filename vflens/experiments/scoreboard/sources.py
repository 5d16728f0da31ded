"""The code that decides a result of the scoreboard: of a plug-in, and of the mathematics that it imports.

Most changes of VFLens change no result: ``tests/e2e/test_examples_stay.py`` holds the protocol's bits. So a
result stays valid while its plug-ins and what they compute with stay as they are; a digest of the whole
package would discard all of them every day.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_FOLLOWED = tuple(
    f"vflens.{package}." for package in ("attacks", "defenses", "numerics", "models", "datasets")
)


@cache
def digest(plugin: type) -> str:
    """A digest of the source of ``plugin`` and of all that it imports from the packages of mathematics."""
    found = hashlib.blake2b(digest_size=12)
    for module in sorted(_closure(plugin.__module__)):
        file = _file(module)
        found.update(module.encode() + b"\0" + (file.read_bytes() if file else b"") + b"\0")
    return found.hexdigest()


def _closure(module: str) -> set[str]:
    """``module`` and the modules of the followed packages that it imports, and those that they import."""
    found, left = set[str](), [module]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [other for other in _imported(name) if other.startswith(_FOLLOWED) and _file(other)]
    return found


@cache
def _imported(module: str) -> tuple[str, ...]:
    file = _file(module)
    return () if file is None else tuple(_names(ast.parse(file.read_bytes())))


def _names(tree: ast.AST) -> Iterator[str]:
    """The modules of a source's import statements, those inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)  # it may be a module


@cache
def _file(module: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # a class of a module, not a package
        return None
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None
