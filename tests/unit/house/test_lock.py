"""Locked requirements fit constraints.txt and pyproject.toml, by the metadata of installed packages."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DEEP = {"torch"}  # its file differs from machine to machine: no list of hashes fits all
EXTRAS = sorted(
    name for name in PROJECT["project"]["optional-dependencies"] if name not in ("all", "deep", "dev", "docs")
)


def pins(text: str) -> dict[str, str]:
    """Package → version."""
    found = re.findall(r"^([\w.-]+)==([^\s\\]+)", text, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def lock(name: str) -> str:
    return (ROOT / "requirements" / name).read_text(encoding="utf-8")


def needed(extras: list[str]) -> set[str]:
    """Every package that the project needs with these extras, directly or not."""
    project = PROJECT["project"]
    direct = [*project["dependencies"], *(r for e in extras for r in project["optional-dependencies"][e])]
    waiting = [Requirement(text) for text in direct]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = waiting.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        for child in map(Requirement, requires(requirement.name) or ()):
            chosen = ({"extra": extra} for extra in ("", *requirement.extras))
            if child.marker is None or any(map(child.marker.evaluate, chosen)):
                waiting.append(child)
    return {name for name, _ in seen}


def test_the_build_gates_install_what_is_locked() -> None:
    """The hook's dependencies are those of core.txt; the action reads the file, with its hashes."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert pins("\n".join(hook["additional_dependencies"])) == pins(lock("core.txt"))
    action = yaml.safe_load((ROOT / ".github/actions/thresholds/action.yml").read_text(encoding="utf-8"))
    install = action["runs"]["steps"][0]["run"]
    assert '--require-hashes -r "$SELF/requirements/core.txt"' in install
    assert '-c "$SELF/constraints.txt" "$SELF"' in install


LOCKS = ["build.txt", "core.txt", "dev.txt", "extras.txt"]


@pytest.mark.parametrize(
    ("name", "extras"), [("core.txt", []), ("extras.txt", EXTRAS), ("dev.txt", [*EXTRAS, "dev"])]
)
def test_a_lock_holds_what_the_project_needs(name: str, extras: list[str]) -> None:
    """If this fails, run `make lock`."""
    assert set(pins(lock(name))) == needed(extras)


def test_the_wheel_is_built_by_a_locked_package() -> None:
    wanted = [canonicalize_name(Requirement(text).name) for text in PROJECT["build-system"]["requires"]]
    assert list(pins(lock("build.txt"))) == wanted


@pytest.mark.parametrize("name", LOCKS)
def test_locked_versions_are_those_of_the_constraints(name: str) -> None:
    constraints = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    locked = pins(lock(name))
    assert locked
    assert locked == {package: constraints.get(package) for package in locked}
    assert not DEEP & set(locked)


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_hashes(name: str) -> None:
    """Otherwise pip refuses the whole file; a hash has 32 bytes."""
    text = re.sub(r"^\s*#.*\n", "", lock(name), flags=re.MULTILINE)
    blocks = [block.split() for block in re.split(r"^(?=\S+==)", text, flags=re.MULTILINE) if block.strip()]
    assert blocks
    for package, *words in blocks:
        hashes = [word for word in words if word != "\\"]
        assert hashes, f"{package} has no hash"
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", word) for word in hashes), package
