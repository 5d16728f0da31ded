"""A class or a file is a plug-in until a block ends, and then no longer."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vflens as vl
from vflens import attacks
from vflens.attacks.half_star import HalfStar
from vflens.errors import ConfigError, PluginError
from vflens.registry import ATTACKS

ROOT = Path(__file__).parents[2]
A, B = np.array([[1.0, 2.0]]), np.array([[1.2]])


def class_of(name: str, value: float) -> Any:
    """An attack's class that answers ``value`` for every number."""

    def solve(self: Any, A: Any, b: Any, *, rng: Any, moments: Any = None) -> Any:
        return vl.linear_estimate(np.full((len(b), A.shape[1]), value), A, b)

    return type(name, (vl.LinearAttack,), {"solve": solve, "__doc__": "One number.", "__module__": __name__})


def test_a_file_is_a_plugin_until_the_end(tmp_path: Path) -> None:
    mine = tmp_path / "mine_of_test.py"
    shutil.copy(ROOT / "attacks" / "half_star.py", mine)
    (tmp_path / "neighbour.py").write_text("raise RuntimeError")
    with ATTACKS.entered_file(mine) as name:
        assert name == "mine_of_test"
        assert name in ATTACKS.names()
        assert "neighbour" not in ATTACKS.names()
        assert ATTACKS.get(f"{name}:twice").__name__ == HalfStar.__name__
        assert ATTACKS.get(name) is not HalfStar
    assert "mine_of_test" not in ATTACKS.names()
    assert "vflens.attacks.mine_of_test" not in sys.modules


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("absent.py", None, "is no Python file: give one plug-in as `vflens new` makes it"),
        ("Mine.py", "", "rename the file, 'Mine' is not of lower case letters"),
        ("half_star.py", "", "rename the file, 'half_star' is one of the installed attacks"),
        ("empty_of_test.py", "", "must define exactly one public subclass"),
        ("broken_of_test.py", "1 / 0", "does not import: ZeroDivisionError"),
        (
            "bare_of_test.py",
            "from vflens.plugins.attack import Attack\nclass Bare(Attack): ...",
            "'bare_of_test' does not define needs and reconstruct of vflens.plugins.attack:Attack: add it",
        ),
    ],
)
def test_what_is_no_plugin_is_refused(tmp_path: Path, file: str, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / file).write_text(text)
    with pytest.raises((ConfigError, PluginError), match=words), ATTACKS.entered_file(tmp_path / file):
        pass
    assert not ATTACKS.given


def test_a_class_has_the_name_of_its_words_and_its_docstring() -> None:
    with ATTACKS.entered(class_of("OneNumberOfTest", 0.5)) as name:
        assert name == "one_number_of_test"
        assert ATTACKS.summary(name) == "One number."
        assert name in ATTACKS.names()
    with pytest.raises(PluginError, match="unknown attacks plug-in 'one_number_of_test'"):
        ATTACKS.get("one_number_of_test")


def test_an_installed_class_is_itself() -> None:
    with ATTACKS.entered(HalfStar) as name:
        assert (name, ATTACKS.given) == ("half_star", {})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (class_of("HalfStar", 0.5), "class HalfStar: rename the class, 'half_star' is one of the installed"),
        (class_of("Größe", 0.5), "rename the class, 'größe' is not of lower case letters"),
        (class_of("_Private", 0.5), "is no public subclass of"),
        (dict, "<class 'dict'> is no public subclass of vflens.plugins.attack:Attack"),
        (HalfStar(), "is no public subclass of"),
    ],
)
def test_other_classes_are_refused(given: Any, words: str) -> None:
    with pytest.raises((ConfigError, PluginError), match=words), ATTACKS.entered(given):
        pass


def test_a_second_class_of_one_name_answers_for_itself() -> None:
    """In a notebook a cell runs again: nothing keeps the first class by its name."""
    for value in (0.25, 0.75):
        with ATTACKS.entered(class_of("OneNumberOfTest", value)) as name:
            assert (attacks.estimate(name, A, B).values == value).all()
        assert (vl.estimate(class_of("OneNumberOfTest", value), A, B).values == value).all()
    with pytest.raises(PluginError, match="unknown attacks"):
        attacks.estimate("one_number_of_test", A, B)
