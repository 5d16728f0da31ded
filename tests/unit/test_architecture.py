"""docs/architecture.md names files that exist and the floors that the linter keeps."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


def test_every_file_that_it_names_exists() -> None:
    named = re.findall(
        r"`((?:attacks|clients|coordinator|defenses|docs|protos|services|tests|vflens)/[\w/.]*)`", PAGE
    )
    assert len(named) > 30
    missing = [name for name in named if "NAME" not in name and not (ROOT / name).exists()]
    assert not missing


def test_its_floors_are_those_of_the_linter() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    kept = [layer.split(" | ") for layer in layers]
    picture = PAGE.split("```")[1].strip().splitlines()
    drawn = [re.split(r" [·│] ", re.split(r"\s{3,}", line)[0].strip()) for line in picture]
    assert drawn == kept


def test_each_step_of_a_walk_is_in_the_room_that_the_picture_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    from architecture_picture import WALKS

    for title, (_, rooms) in WALKS.items():
        walk = PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
        steps = re.split(r"^\d+\. ", walk, flags=re.MULTILINE)[1:]
        assert len(steps) == len(rooms), title
        for room, step in zip(rooms, steps, strict=True):
            assert re.search(rf"`(vflens/)?{room}[/.]", step), f"{title}: {room} is not in: {step}"


def test_every_room_stands_on_a_floor() -> None:
    rooms = {p.name for p in (ROOT / "vflens").iterdir() if p.is_dir() and (p / "__init__.py").exists()}
    loose = {p.stem for p in (ROOT / "vflens").glob("*.py")} - {"__init__"}
    picture = PAGE.split("```")[1]
    assert rooms | loose == {
        name
        for line in picture.strip().splitlines()
        for name in re.split(r" [·│] ", re.split(r"\s{3,}", line)[0].strip())
    }


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
