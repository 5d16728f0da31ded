"""How many tests each file has: ``make test-counts`` writes ``tests/counts.txt``, the suite compares it."""

from __future__ import annotations

import ast
from pathlib import Path

HERE = Path(__file__).parent
TABLE = HERE / "counts.txt"


def names_in(file: Path) -> list[str]:
    """The names of the test functions of a module, as pytest finds them."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    names = [n.name for n in found if not isinstance(n, ast.ClassDef)]
    for cls in (c for c in found if isinstance(c, ast.ClassDef) and c.name.startswith("Test")):
        names += [f"{cls.name}.{n.name}" for n in cls.body if isinstance(n, ast.FunctionDef)]
    return [name for name in names if name.rpartition(".")[2].startswith("test_")]


def modules() -> list[Path]:
    """The files of tests, in order."""
    return sorted(HERE.rglob("test_*.py"))


def counted() -> list[str]:
    """A line for each file: its path below ``tests`` and its number of test functions."""
    return [f"{file.relative_to(HERE).as_posix()} {len(names_in(file))}" for file in modules()]


if __name__ == "__main__":
    TABLE.write_text("".join(f"{line}\n" for line in counted()), encoding="utf-8")
