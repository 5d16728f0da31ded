"""How many tests each file has, and how many lines each room of the source.

``make test-counts`` writes ``tests/counts.txt`` and ``tests/lines.txt``, the suite compares them: a review
sees which tests came and went, and where the source grew.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
CONTRACTS, KINDS = HERE.parent / "vflens/testing", ("attacks", "datasets", "defenses", "families")
SOURCE = ("attacks", "clients", "coordinator", "defenses", "services", "vflens")


def names_in(file: Path) -> list[str]:
    """The names of the test functions of a module, as pytest finds them."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    names = [n.name for n in found if not isinstance(n, ast.ClassDef)]
    for cls in (c for c in found if isinstance(c, ast.ClassDef) and re.match("Test|.+Contract$", c.name)):
        names += [f"{cls.name}.{n.name}" for n in cls.body if isinstance(n, ast.FunctionDef)]
    return [name for name in names if name.rpartition(".")[2].startswith("test_")]


def modules() -> list[Path]:
    """The files of tests, in order, and those of the contracts that some of them derive from."""
    return [*sorted(HERE.rglob("test_*.py")), *(CONTRACTS / f"{kind}.py" for kind in KINDS)]


def counted() -> list[str]:
    """A line for each file: its path, of one in ``tests`` below it, and its number of test functions."""
    paths = [(file, file.relative_to(HERE if HERE in file.parents else HERE.parent)) for file in modules()]
    return [f"{path.as_posix()} {len(names_in(file))}" for file, path in paths]


def room_of(file: Path) -> str:
    """The room of a file of the source: a folder of the checkout, of ``vflens`` or of its experiments."""
    folders = file.parts[:-1]
    return "/".join(folders[: 3 if folders[1:2] == ("experiments",) else 2 if folders[0] == "vflens" else 1])


def measured() -> list[str]:
    """A line for each room: its path and its number of lines."""
    root, lines = HERE.parent, Counter[str]()
    for file in (file for top in SOURCE for file in (root / top).rglob("*.py")):
        lines[room_of(file.relative_to(root))] += file.read_bytes().count(b"\n")
    return [f"{room} {lines[room]}" for room in sorted(lines)]


#: Table → its lines as they are now.
TABLES = {HERE / "counts.txt": counted, HERE / "lines.txt": measured}

if __name__ == "__main__":
    for table, now in TABLES.items():
        table.write_text("".join(f"{line}\n" for line in now()), encoding="utf-8")
