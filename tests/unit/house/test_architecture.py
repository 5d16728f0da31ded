"""docs/architecture.md names files that exist and the floors that the linter keeps."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from nonempty import nonempty

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


def test_every_file_that_it_names_exists() -> None:
    named = re.findall(
        r"`((?:attacks|clients|coordinator|defenses|docs|protos|services|tests|vflens)/[\w/.]*)`", PAGE
    )
    assert len(named) > 30
    missing = [name for name in named if "NAME" not in name and not (ROOT / name).exists()]
    assert not missing


@pytest.fixture
def sheets(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What draws the pictures of the rooms."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module("architecture_picture")


def _floors(number: int) -> list[list[str]]:
    """The floors of the page's ``number``-th picture in letters."""
    lines = PAGE.split("```")[2 * number + 1].strip().splitlines()
    return [re.split(r" [·│] ", re.split(r"\s{3,}", line)[0].strip()) for line in lines]


def test_its_floors_are_those_of_the_linter(sheets: ModuleType) -> None:
    assert len(sheets.SHEETS) == 2
    for number, (name, sheet) in enumerate(sheets.SHEETS.items()):
        assert _floors(number) == sheets.floors(sheet.container)
        assert f"]({name})" in PAGE


def test_each_step_of_a_walk_is_in_the_room_that_the_picture_shows(sheets: ModuleType) -> None:
    for sheet in nonempty(sheets.SHEETS.values()):
        within = sheet.container.replace(".", "/")
        for title, _, rooms in nonempty(sheet.walks):
            walk = PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
            steps = re.split(r"^\d+\. ", walk, flags=re.MULTILINE)[1:]
            assert len(steps) == len(rooms), title
            for room, step in zip(rooms, steps, strict=True):
                assert re.search(rf"`({within}/)?{room}[/.]", step), f"{title}: {room} is not in: {step}"


def test_every_room_stands_on_a_floor(sheets: ModuleType) -> None:
    for number, sheet in enumerate(nonempty(sheets.SHEETS.values())):
        inside = (ROOT / sheet.container.replace(".", "/")).iterdir()
        rooms = {p.stem for p in inside if p.suffix == ".py" or (p / "__init__.py").exists()} - {"__init__"}
        assert rooms == {name for floor in _floors(number) for name in floor}


def test_all_holds_every_extra_of_a_user_and_every_requirement_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    users = sorted(set(extras) - {"all", "dev", "docs"})
    assert extras["all"] == [f"vflens[{','.join(users)}]"]
    pins = dict(
        line.lower().split("==")
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    )
    wanted = {r for given in (project["dependencies"], *extras.values()) for r in given}
    names = {re.split(r"[\[>=]", r)[0] for r in wanted} - {"vflens"}
    assert {n.replace("_", "-") for n in names} <= {n.replace("_", "-") for n in pins}
    assert pins["torch"] == "2.13.0"
