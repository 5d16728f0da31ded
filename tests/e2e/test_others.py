"""The commands of docs/others.md run, and say what the page says."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
from commandline import Run, vflens

_FIXTURES = (vflens,)  # used by name
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/others.md").read_text(encoding="utf-8")


def lines(section: str) -> list[list[str]]:
    """The words of each command of a section of the page."""
    body = PAGE.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    fences = re.findall(r"^```sh\n(.*?)^```$", body, re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for fence in fences for line in fence.splitlines()]


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with what the page names, to write into."""
    for name in ("examples", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)


def test_a_trained_model(vflens: Run) -> None:
    (line,) = lines("A trained model")
    ended = vflens(*line[1:])
    assert ended.code == 0
    assert "From the score of 10 boosted trees path restriction errs by" in ended.out
    assert Path("audit.html").exists()


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("SecretFlow", "100.0% of the labels; best blind guess (the most frequent class) 53.3%"),
        ("FATE", "MSE .031 ± .005; best blind guess (column_means) .050"),
    ],
)
def test_a_recording(section: str, text: str, vflens: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []
    for command, *words in lines(section):
        if command == "python":
            monkeypatch.setattr(sys, "argv", words)
            runpy.run_path(words[0], run_name="__main__")
        elif "--weights" in words:
            assert "is a pickle" in vflens(*words).err
        else:
            ended.append(vflens(*words))
    assert [e.code for e in ended] == [0, 0, 0, 0]
    assert text in ended[-1].out
