"""What scripts write into the docs is in step with them: tables and pictures."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[3]


def test_drawn_pictures_are_in_step() -> None:
    """Those that take seconds; the others measure whole runs."""
    rooms = _script("architecture_picture")
    drawn = {
        **{name: rooms.picture(sheet) for name, sheet in rooms.SHEETS.items()},
        "estimators.svg": _script("estimators_picture").picture(),
        "attacks/black_box.svg": _script("plugin_pictures").black_box_errors(),
    }
    for name, svg in drawn.items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == svg, f"docs/{name}: draw it again"


def _script(name: str) -> ModuleType:
    """A module of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_tables_are_in_step() -> None:
    tables = _script("tables")
    named: set[str] = set()
    for page in tables.PAGES:
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        named |= set(re.findall(r"<!-- table: ([\w-]+) -->", text))
        assert tables.written(text) == text, f"{page}: run `python docs/tables.py`"
    assert named == {
        "access",
        "direct",
        "horizontal",
        "errors",
        "metrics",
        *(m.__name__ for m in tables.MODELS),
        *tables.REPRODUCED,
    }
    assert tables.REPRODUCED
