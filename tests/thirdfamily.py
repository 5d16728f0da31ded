"""The family of models on the page of contributing, as a package of its own."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

_CONTRIBUTING = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
_SECTION = _CONTRIBUTING.split("\n## Add a family of models\n", 1)[1].split("\n## ", 1)[0]


def fence(language: str) -> str:
    """The page's code of this language."""
    found = re.search(rf"```{language}\n(.*?)```", _SECTION, re.DOTALL)
    assert found
    return found[1]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder that holds what pip leaves of a package with the family."""
    (tmp_path / "one_hot_regression.py").write_text(fence("python"), encoding="utf-8")
    info = tmp_path / "linear_models-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: linear-models\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[vflens.models]\none_hot_regression = one_hot_regression\n")
    return tmp_path


@pytest.fixture
def importable(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """It, where this process looks for packages."""
    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.delitem(sys.modules, "one_hot_regression", raising=False)
    return installed
