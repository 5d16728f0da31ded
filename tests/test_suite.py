"""No test vanishes silently: by a deleted file, a lost prefix, or a second function of its name."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from counts import TABLES, modules, names_in
from nonempty import nonempty
from quick import ROOMS

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "vflens"


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
def test_no_test_and_no_line_came_or_went_unseen(table: Path) -> None:
    """``make test-counts`` writes the tables; their difference shows in a review what came and went."""
    listed, now = table.read_text(encoding="utf-8").splitlines(), TABLES[table]()
    differ = sorted(set(listed) ^ set(now))
    assert listed == now, f"tests/{table.name} differs at {differ}: if that is meant, run make test-counts"


def test_every_module_has_tests_with_names_of_their_own() -> None:
    for file in nonempty(modules()):
        names = Counter(names_in(file))
        assert names, f"{file} holds no tests"
        assert max(names.values()) == 1, (
            f"{file}: the later of two tests called {names.most_common(1)} hides the first"
        )


def test_no_module_hides_another() -> None:
    """Without packages pytest imports modules by their stem: two of one name would be one."""
    stems = Counter(f.stem for f in HERE.rglob("*.py") if f.stem != "__init__")
    assert max(stems.values()) == 1, stems.most_common(1)


def test_quick_has_a_test_of_each_room() -> None:
    rooms = {".".join(file.parent.relative_to(PACKAGE).parts) for file in _sources("__init__.py")}
    rooms |= {file.stem for file in PACKAGE.glob("[!_]*.py")}
    assert set(ROOMS) == rooms - {""}


@pytest.mark.parametrize("room", ROOMS)
def test_quick_names_a_test_of_the_room(room: str) -> None:
    name, _, test = ROOMS[room].partition("::")
    assert test.replace("::", ".") in names_in(HERE / name)
    folder, _, module = f"vflens.{room}".rpartition(".")
    imported = rf"{folder}\.{module}\b|{folder} import .*\b{module}\b"
    assert re.search(imported, (HERE / name).read_text(encoding="utf-8")), f"{name} imports nothing of {room}"


def _sources(name: str) -> list[Path]:
    """The files of this name in the package; ``rglob`` follows no link, and the package has some."""
    folders = [PACKAGE, *(folder for folder in PACKAGE.iterdir() if folder.is_symlink())]
    return [file for folder in folders for file in folder.rglob(name)]
