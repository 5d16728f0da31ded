"""What an attack may import is listed here: whatever is not listed is out of its reach."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Set

import grimp
import pytest

from vflens.plugins.attack import Attack
from vflens.registry import ATTACKS
from vflens.types import Knowledge

#: Rooms of VFLens, and other packages, that a file of an attack may import.
_ROOMS = ("attacks", "errors", "models", "numerics", "plugins", "randomness", "types", "words")
ROOMS = {"vflens." + room for room in _ROOMS}
PACKAGES = {"numpy", "pydantic", "torch"}
STANDARD = {
    "__future__",
    "abc",
    "collections",
    "contextlib",
    "copy",
    "dataclasses",
    "functools",
    "itertools",
    "math",
    "typing",
}
#: ``attacks.estimate`` finds an attack by its name, and words a mistake of its caller as a configuration's.
ESTIMATE = {"vflens.registry", "vflens.config"}
#: What those rooms import in turn: how plug-ins are found and named, the type of an array.
BEHIND = {"vflens.registry", "vflens.names", "vflens.array"}

_LOADED = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(f"vflens.attacks.{name}")
print("\\n".join(sys.modules))
"""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("vflens", include_external_packages=True)


def _rooms(modules: Collection[str]) -> Set[str]:
    """Rooms of VFLens as "vflens.room", other packages by their name."""
    return {".".join(m.split(".")[: 2 if m.startswith("vflens.") else 1]) for m in modules}


def test_a_file_of_an_attack_imports_what_is_listed(graph: grimp.ImportGraph) -> None:
    files = graph.find_descendants("vflens.attacks")
    assert len(files) >= len(ATTACKS.names())
    imported = {f: _rooms(graph.find_modules_directly_imported_by(f)) for f in files}
    beyond = {f: found - ROOMS - PACKAGES - STANDARD for f, found in imported.items()}
    assert not {f: found for f, found in beyond.items() if found}


def test_the_front_of_the_attacks_imports_what_is_listed(graph: grimp.ImportGraph) -> None:
    found = _rooms(graph.find_modules_directly_imported_by("vflens.attacks"))
    assert found - ROOMS - PACKAGES - STANDARD == ESTIMATE


def test_nothing_else_of_vflens_is_reached_through_what_is_listed(graph: grimp.ImportGraph) -> None:
    reached = {m for f in graph.find_descendants("vflens.attacks") for m in graph.find_upstream_modules(f)}
    assert {room for room in _rooms(reached) if room.startswith("vflens.")} == ROOMS | BEHIND
    assert not _rooms(reached) & {"grpc", "google", "pyarrow"}


def _loaded(names: Collection[str]) -> list[str]:
    command = [sys.executable, "-c", _LOADED, *names]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_importing_every_attack_loads_nothing_else() -> None:
    """Imports that no analysis sees, such as those by name, are seen here."""
    loaded = _loaded(ATTACKS.names())
    assert {f"vflens.attacks.{name}" for name in ATTACKS.names()} <= set(loaded)
    assert {room for room in _rooms(loaded) if room.startswith("vflens.")} <= ROOMS | BEHIND
    assert not _rooms(loaded) & {"grpc", "google", "pyarrow"}


def _needs(name: str) -> frozenset[Knowledge]:
    attack: type[Attack] = ATTACKS.get(name)
    return attack.needs


def test_attacks_on_softmax_regression_do_not_pay_for_torch() -> None:
    # pmc, amc, exploit and first_gradients are for networks; grna learns one.
    learned = {"pmc", "amc", "exploit", "first_gradients", "grna"}
    names = [n for n in ATTACKS.names() if Knowledge.ARCHITECTURE not in _needs(n) and n not in learned]
    assert len(names) >= 8
    assert "torch" not in _loaded(names)
