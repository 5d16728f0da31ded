"""Which edits change the digest of a plug-in's code, and which leave it."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vflens.experiments.scoreboard import sources
from vflens.registry import ATTACKS, DEFENSES

PLUGIN = '''\
"""A plug-in."""
from __future__ import annotations
from typing import TYPE_CHECKING
import math
import whole_of_test.shared as shared
from whole_of_test import tools
from whole_of_test.names import passed
from whole_of_test.values import STEP
from .near import near
if TYPE_CHECKING:
    from whole_of_test.unused import Shape

class Plugin:
    """It guesses."""

    steps: int = 3

    def guess(self, x: float) -> float:
        """What it guesses."""
        from whole_of_test.late import late
        return math.sqrt(tools.reached(x, STEP)) + passed(x) + near(x) + late(getattr(shared, "any"))
'''
FILES = {
    "plugin": PLUGIN,
    "tools": '''\
"""Tools."""
LIMIT = 3.0

def reached(x, step):
    """It helps."""
    return min(below(x) + step, LIMIT)

def below(x):
    return x + 1

def unreached(x):
    return x + 5

@keeps
def kept(x):
    return x + 6
''',
    "names": """\
try:
    from whole_of_test.far import far as passed
except ImportError:
    passed = None
""",
    "far": "def far(x):\n    return 2 * x\n\ndef other(x):\n    return x\n",
    "near": "def near(x):\n    return 3 * x\n",
    "late": "def late(x):\n    return 4 * x\n",
    "shared": "def any(x):\n    return 7 * x\n",
    "values": "STEP = 0.5\n\ndef value(x):\n    return x\n",
    "unused": "class Shape:\n    sides = 8\n",
}
Edited = Callable[..., str]


@pytest.fixture
def edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Edited]:
    """The digest of the plug-in after the text ``old`` of a file was replaced by ``new``."""
    package = tmp_path / "whole_of_test"
    package.mkdir()
    for name, text in {"__init__": "", **FILES}.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (package / "tools.py").write_text(FILES["tools"].replace("@keeps\n", ""))  # that decorator is made up
    plugin = importlib.import_module("whole_of_test.plugin").Plugin
    (package / "tools.py").write_text(FILES["tools"])

    def digest(name: str = "plugin", old: str = "", new: str = "") -> str:
        text = FILES.get(name, "")
        assert old in text
        (package / f"{name}.py").write_text(text.replace(old, new) if old else text + new)
        for cached in (sources.digest, sources._deciding, sources._meant, sources._source):
            cached.cache_clear()
        found = sources.digest(plugin)
        (package / f"{name}.py").write_text(text)
        return found

    yield digest
    for name in [name for name in sys.modules if name.partition(".")[0] == "whole_of_test"]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("plugin", "It guesses", "It guesses well"),
        ("plugin", '        """What it guesses."""\n', ""),
        ("tools", '"""Tools."""\n', '"""Other tools."""\n\n\n'),
        ("tools", "    return min(", "    # the least\n    return min("),
        ("tools", "min(below(x) + step, LIMIT)", "(min( (below(x)+step) ,LIMIT, ))"),
        ("tools", "def below(x):", "def below(x: float) -> 'float':"),
        ("plugin", "import Shape", "import Shape, Other"),
        ("plugin", "from typing import TYPE_CHECKING\n", "from typing import TYPE_CHECKING, Any\n"),
        ("tools", "x + 5", "x + 50"),
        ("far", "return x\n", "return x + 1\n"),
        ("values", "return x\n", "return x + 1\n"),
        ("unused", "sides = 8", "sides = 9"),
        ("fresh", "", "def reached(x):\n    return 0\n"),
    ],
)
def test_an_edit_that_decides_nothing_leaves_the_digest(
    edited: Edited, name: str, old: str, new: str
) -> None:
    assert edited(name, old, new) == edited()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("plugin", "int = 3", "int = 4"),
        ("plugin", "steps: int", "steps: float"),  # a setting is checked by it
        ("plugin", "import math", "import cmath as math"),
        ("tools", "below(x) + step", "below(x) - step"),
        ("tools", "x + 1", "x + 1.0"),
        ("tools", "LIMIT = 3.0", "LIMIT = 4.0"),
        ("tools", "x + 6", "x + 60"),  # its decorator may have kept it
        ("tools", "", "\n\nreached.__defaults__ = (2.0,)\n"),
        ("far", "2 * x", "20 * x"),
        ("names", "passed = None", "passed = print"),
        ("near", "3 * x", "30 * x"),
        ("late", "4 * x", "40 * x"),
        ("shared", "7 * x", "70 * x"),  # the module is used as a value
        ("values", "STEP = 0.5", "STEP = 0.6"),
    ],
)
def test_an_edit_of_what_is_reached_changes_the_digest(edited: Edited, name: str, old: str, new: str) -> None:
    assert edited(name, old, new) != edited()


@pytest.mark.parametrize(
    ("name", "text", "new"),
    [
        ("star", "from whole_of_test.far import *\n", "def other(x):\n    return x + 1\n"),
        ("lazy", "", "def __getattr__(name):\n    return print\n\ndef other(x):\n    return 1\n"),
    ],
)
def test_names_that_cannot_be_resolved_count_whole(
    edited: Edited, monkeypatch: pytest.MonkeyPatch, name: str, text: str, new: str
) -> None:
    """Names of a star, and those that a module computes."""
    monkeypatch.setitem(FILES, "plugin", PLUGIN.replace("import math\n", f"import math\n{text}"))
    changed = ("far", "return x\n", "return x + 1\n") if name == "star" else ("far", "", f"\n\n{new}")
    assert edited(*changed) != edited()


def test_what_stands_apart_is_in_no_digest(edited: Edited) -> None:
    """Nor what only it reaches; and a digest leaves the next one as it is."""
    plugin = sys.modules["whole_of_test.plugin"].Plugin
    apart = ("whole_of_test.tools", "whole_of_test.near")
    edited()
    units = {module.rpartition(".")[2] for module, _ in sources._reached(plugin, apart)}
    assert units == {"plugin", "names", "far", "late", "shared", "values"}
    assert {"tools", "near"} <= {module.rpartition(".")[2] for module, _ in sources._reached(plugin)}


def test_a_refusal_of_a_family_leaves_what_only_names_its_type() -> None:
    """Attacks and defences of softmax regression do not reach the base of every family of models."""
    for kind in (ATTACKS.get("lmmse"), ATTACKS.get("half"), DEFENSES.get("label_dp")):
        found = sources._reached(kind)
        assert (kind.__module__, kind.__qualname__) in found
        assert not [unit for unit in found if unit[0] == "vflens.models.family"]


def test_another_process_finds_the_same() -> None:
    """The order of sets changes from process to process."""
    code = (
        "from vflens.registry import ATTACKS\nfrom vflens.experiments.scoreboard.sources import digest\n"
        "print(digest(ATTACKS.get('clear_columns')))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == sources.digest(ATTACKS.get("clear_columns"))
