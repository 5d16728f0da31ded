"""``make bench-guard`` finds what costs more, and only that."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import guard
from benchmarks.guarded import GUARDED, Guarded

START, STEP = Guarded("start", ()), Guarded("step", (), count=10, less="start")
BURN = """
import sys, time
while time.process_time() < {seconds}: pass
sys.exit({code!r})
"""


def test_what_is_subtracted_stands_before_and_names_are_unique() -> None:
    names = [guarded.name for guarded in GUARDED]
    assert len(names) == len(set(names)) >= 10
    for i, guarded in enumerate(GUARDED):
        assert guarded.less is None or guarded.less in names[:i]
        assert not guarded.command[0].startswith("-") or guarded.name == "start"


def test_a_figure_is_what_more_steps_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "GUARDED", (START, STEP))
    pair = {"earlier": {"start": 2.0, "step": 3.0}, "now": {"start": 2.2, "step": 3.4}}
    slow = {"earlier": {"start": 2.0, "step": 3.0}, "now": {"start": 2.0, "step": 9.0}}
    lines, slower = guard.judge([pair, pair, slow], 1.15)
    assert lines[1].split() == ["start", "2.00", "s", "2.20", "s", "1.10", "(1.00", "to", "1.10)"]
    assert lines[2].split() == ["step", "0.10", "s", "0.12", "s", "1.20", "(1.20", "to", "7.00)"]
    assert slower == ["step"]
    assert guard.judge([pair], 1.25)[1] == []


def test_more_processor_time_is_found_and_a_refusal_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = {"earlier": tmp_path / "earlier", "now": tmp_path / "now"}
    for side, seconds in (("earlier", 0.1), ("now", 0.3)):
        _program(sides[side], BURN.format(seconds=seconds, code=0))
    monkeypatch.setattr(guard, "GUARDED", (START,))
    rounds, refused = guard.measure(sides, tmp_path, minutes=0)
    assert len(rounds) == guard.LEAST_ROUNDS
    assert guard.judge(rounds, 1.15)[1] == ["start"]
    assert refused == []

    _program(sides["earlier"], BURN.format(seconds=0, code="error: no such setting"))
    rounds, refused = guard.measure(sides, tmp_path, minutes=0)
    assert refused == ["start is left out: the earlier one said: error: no such setting"]
    assert guard.judge(rounds, 1.15) == ([f"{'':<22}{'earlier':>12}{'now':>12}   now over earlier"], [])

    _program(sides["now"], BURN.format(seconds=0, code="error: broken"))
    with pytest.raises(SystemExit, match="failed: error: broken"):
        guard.measure(sides, tmp_path, minutes=0)


def test_figures_are_chosen_by_name_with_what_they_subtract() -> None:
    assert [g.name for g in guard.chosen(["audit-40", "step"])] == ["run-in-process", "step", "audit-40"]
    assert guard.chosen([]) == list(GUARDED)
    with pytest.raises(SystemExit, match="--only names 'audit-41', which is no figure: start, "):
        guard.chosen(["audit-41"])


def test_an_unknown_commit_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="AGAINST is 'nowhere', which git does not know here"):
        guard._unpacked("nowhere", tmp_path)


def _program(checkout: Path, code: str) -> None:
    """A package whose command is ``code``."""
    folder = checkout / "vflens/cli"
    folder.mkdir(parents=True, exist_ok=True)
    for package in (folder, folder.parent):
        (package / "__init__.py").touch()
    (folder / "main.py").write_text(code, encoding="utf-8")
