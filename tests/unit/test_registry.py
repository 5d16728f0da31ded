"""Plug-ins are found in a folder and by entry point, listed without being imported, and loud when broken."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from vflens import registry
from vflens.errors import ConfigError, PluginError
from vflens.plugins.attack import LinearAttack
from vflens.plugins.defense import Defense
from vflens.registry import ATTACKS, DEFENSES, Registry

ATTACK = '''"""Guess a tenth everywhere."""

import numpy as np
from vflens.plugins.attack import LinearAttack, linear_estimate


class _Draft(LinearAttack):
    """Private: not a plug-in."""


class Tenth(LinearAttack):
    needs = frozenset()

    def solve(self, A, b, *, rng, moments=None):
        return linear_estimate(np.full((len(b), A.shape[1]), 0.1), A, b)
'''
DEFENSE = '''"""Halve every embedding."""

from vflens.plugins.defense import Defense


class Halve(Defense):
    def on_embedding(self, h, ctx):
        return h / 2
'''

WriteModule = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WriteModule]:
    """Write a file of an importable folder; what was imported from it is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))

    def write_file(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
        importlib.invalidate_caches()

    yield write_file
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in {"lab_attacks", "lab_defenses", "other_package"}:
            del sys.modules[name]


def _folder(write: WriteModule, name: str, text: str) -> Registry:
    write("lab_attacks/__init__.py", "")
    write(f"lab_attacks/{name}.py", text)
    return Registry("lab_attacks", "vflens.nothing", "vflens.plugins.attack:Attack")


def test_one_file_in_the_folder_adds_an_attack(write: WriteModule) -> None:
    registry = _folder(write, "tenth", ATTACK)
    write("lab_attacks/_helper.py", "raise RuntimeError('a helper is no plug-in')")
    assert registry.names() == ["tenth"]
    assert registry.summary("tenth") == "Guess a tenth everywhere."
    assert not {"lab_attacks", "lab_attacks.tenth"} & set(sys.modules)
    attack = registry.get("tenth")
    assert issubclass(attack, LinearAttack)
    estimate = attack().solve(np.zeros((0, 2)), np.zeros((3, 0)), rng=np.random.default_rng(0))
    np.testing.assert_array_equal(estimate.values, np.full((3, 2), 0.1))


def test_a_folder_is_read_again_once_a_file_came(
    write: WriteModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report asks thousands of times, which took most of the time that it took."""
    registry, folder = _folder(write, "tenth", ATTACK), tmp_path / "lab_attacks"
    assert registry.names() == ["tenth"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", pytest.fail)
        assert registry.names() == ["tenth"]
    write("lab_attacks/ninth.py", ATTACK)
    os.utime(folder, ns=(0, folder.stat().st_mtime_ns + 1))  # both files may have come in one tick
    assert registry.names() == ["ninth", "tenth"]


def test_one_file_in_the_folder_adds_a_defence(write: WriteModule) -> None:
    write("lab_defenses/__init__.py", "")
    write("lab_defenses/halve.py", DEFENSE)
    registry = Registry("lab_defenses", "vflens.nothing", "vflens.plugins.defense:Defense")
    assert registry.names() == ["halve"]
    assert "lab_defenses.halve" not in sys.modules
    defense = registry.get("halve")
    assert issubclass(defense, Defense)
    assert defense.hooks() == {"on_embedding"}


def test_an_installed_package_adds_both_by_entry_points(write: WriteModule) -> None:
    built_in = ATTACKS.names()
    write("other_package/__init__.py", "")
    write("other_package/tenth.py", ATTACK)
    write("other_package/halve.py", DEFENSE)
    write(
        "other_package-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n"
    )
    write(
        "other_package-1.0.dist-info/entry_points.txt",
        "[vflens.attacks]\ntenth = other_package.tenth\nnamed = other_package.tenth:Tenth\n"
        "wrong = other_package.halve:Halve\n[vflens.defenses]\nhalve = other_package.halve\n",
    )
    assert set(ATTACKS.names()) - set(built_in) == {"tenth", "named", "wrong"}
    assert "halve" in DEFENSES.names()
    assert ATTACKS.summary("tenth") == "Guess a tenth everywhere."  # the module's, its class has none
    assert "other_package" not in sys.modules
    assert ATTACKS.get("tenth") is ATTACKS.get("named")
    assert ATTACKS.get("tenth").__name__ == "Tenth"
    assert DEFENSES.get("halve").__name__ == "Halve"
    with pytest.raises(
        PluginError,
        match=r"'wrong' = 'other_package.halve:Halve' is no subclass of vflens.plugins.attack:Attack",
    ):
        ATTACKS.get("wrong")
    write("lab_attacks/__init__.py", "")
    write("lab_attacks/tenth.py", ATTACK)
    with pytest.raises(
        PluginError,
        match=r"'tenth' is a file of lab_attacks and an entry point of vflens.attacks: rename one",
    ):
        Registry("lab_attacks", "vflens.attacks", "vflens.plugins.attack:Attack").get("tenth")


SENTENCES = '''"""Of the module."""


class Told:
    """Guess what is
    told. More of it.

    A second paragraph.
    """


class Silent:
    pass
'''


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("other_package.inner.words:Told", "Guess what is told."),
        ("other_package.inner.words:Silent", "no description: its class has no docstring"),
        ("other_package.inner.words", "Of the module."),  # it has two public classes
        (
            "other_package.inner.gone:Told",
            "no description: the source of other_package.inner.gone is not there",
        ),
        ("nowhere.words:Told", "no description: the source of nowhere.words is not there"),
        ("other_package.inner.broken:Told", "cannot be read (SyntaxError): mend broken.py"),
    ],
)
def test_an_entry_point_is_described_by_its_class(write: WriteModule, value: str, words: str) -> None:
    write("other_package/__init__.py", "raise RuntimeError('a list imports nothing')")
    write("other_package/inner/__init__.py", "")
    write("other_package/inner/words.py", SENTENCES)
    write("other_package/inner/broken.py", "class")
    write("other_package-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    write("other_package-1.0.dist-info/entry_points.txt", f"[vflens.attacks]\ntold = {value}\n")
    assert ATTACKS.summary("told") == ATTACKS.summary("told:label") == words


@pytest.mark.parametrize(
    "statement",
    [
        "import torch",
        "import math, torch",
        "import torch.nn as nn",
        "import math as m, torch as t",
        "from torch import nn",
        "from vflens import words, needing",
        "from vflens import (\n    words,  # (counted)\n    needing,\n)",
        "from vflens import words as w, needing as n",
        "import vflens.words, vflens.needing",
    ],
)
def test_every_name_of_an_import_counts(
    write: WriteModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    write("vflens/needing.py", "from torch import nn")
    write("vflens/words.py", "if TYPE_CHECKING:\n    import torch")
    write("vflens/asking.py", statement)
    monkeypatch.setattr(registry, "_HERE", tmp_path / "vflens")
    for cached in (registry._imported, registry._needs):
        monkeypatch.setattr(registry, cached.__name__, cached.__wrapped__)
    assert registry._needs("vflens.asking", "torch")
    assert not registry._needs("vflens.words", "torch")


def test_an_unknown_name_has_no_description() -> None:
    assert ATTACKS.summary("nothing") == ""


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        PluginError, match=r"unknown attacks plug-in 'nothing': known are .*half, half_star, .*ls.*zero"
    ):
        ATTACKS.get("nothing")


def test_a_broken_import_is_loud(write: WriteModule) -> None:
    registry = _folder(write, "broken", "import nothing_of_this_name")
    assert registry.names() == ["broken"]
    with pytest.raises(
        PluginError, match=r"'lab_attacks.broken' does not import: ModuleNotFoundError: No module"
    ):
        registry.get("broken")


def test_a_syntax_error_is_loud(write: WriteModule) -> None:
    registry = _folder(write, "broken", "def")
    with pytest.raises(PluginError, match=r"'lab_attacks.broken' does not import: SyntaxError"):
        registry.get("broken")


@pytest.mark.parametrize(
    ("text", "defines"),
    [
        (ATTACK + "\n\nclass Second(Tenth):\n    pass\n", r"\['Tenth', 'Second'\]"),
        ("from vflens.plugins.attack import LinearAttack\n", r"\[\]"),  # what is imported is not defined here
        (DEFENSE, r"\[\]"),
    ],
)
def test_a_file_defines_exactly_one_public_class(write: WriteModule, text: str, defines: str) -> None:
    message = (
        "'several' must define exactly one public subclass of vflens.plugins.attack:Attack, "
        f"it defines {defines}"
    )
    with pytest.raises(PluginError, match=message):
        _folder(write, "several", text).get("several")


def test_a_label_tells_two_settings_of_a_plug_in_apart() -> None:
    assert ATTACKS.get("half:again") is ATTACKS.get("half")
    assert ATTACKS.summary("half:again") == ATTACKS.summary("half") != ""
    with pytest.raises(
        ConfigError, match=r"^plug-in 'half:\.\./x': after the colon stands a label, give 1 to"
    ):
        ATTACKS.get("half:../x")
