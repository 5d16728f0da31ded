"""Why a result is absent: a defence that is refused, or an attack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from thinned import first

from vflens.errors import ConfigError
from vflens.experiments.scoreboard import cells as module
from vflens.experiments.scoreboard.grid import UNDEFENDED, Place
from vflens.experiments.scoreboard.keys import keyed
from vflens.experiments.sweeps.pool import Rows


@pytest.mark.parametrize("defense", first([UNDEFENDED, "marvell"]))
def test_a_refused_attack_costs_no_training(
    defense: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``confidence`` has no seat among two parties; the others share one training."""
    ran: list[list[str]] = []
    run = module._run

    def counted(place: Place, attacks: Any, scratch: str) -> Rows:
        ran.append(list(attacks))
        return run(place, attacks, scratch)

    monkeypatch.setattr(module, "_run", counted)
    place, names = (
        Place("digits", "vertical-lr", defense, 1, 200),
        ["half", "zero", "confidence", "half_star"],
    )
    rows = module.measured(place, keyed(place, names), scratch=str(tmp_path))
    assert ran == [["half", "zero", "half_star"]]
    (refused,) = (r for r in rows if r["attack"] == "confidence")
    assert "let their operator try it" in refused["reason"]
    assert not refused["refused"]
    assert {r["attack"] for r in rows if "figure" in r} == {"half", "zero", "half_star"}


@pytest.mark.parametrize("names", [["half", "confidence", "lmmse"], ["confidence"], ["half"], ["fsha"]])
def test_a_refused_defence_gives_its_own_reason_whichever_attacks_are_asked(
    names: list[str], tmp_path: Path
) -> None:
    """``confidence`` is refused as well, and is read first."""
    place = Place("digits", "vertical-lr", "passport", 1, 200)
    rows = module.measured(place, keyed(place, names), scratch=str(tmp_path))
    (reason,) = {(row["reason"], row["refused"]) for row in rows}
    assert reason[0].startswith("defence 'passport' at 'active' has nothing to act on")
    assert reason[1]


@pytest.mark.parametrize("names", [["half", "lmmse"], ["half"]])
def test_a_place_that_does_not_run_gives_its_own_reason(
    names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(place: Place, attacks: Any, scratch: str) -> Rows:
        raise ConfigError("the first attack ends it" if attacks else "the defence ends it")

    monkeypatch.setattr(module, "_run", fails)
    place = Place("digits", "vertical-lr", UNDEFENDED, 1, 200)
    rows = module.measured(place, keyed(place, names), scratch=str(tmp_path))
    assert {(row["reason"], row["refused"]) for row in rows} == {("the defence ends it", True)}


def test_a_place_runs_alone_once_however_many_attacks_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def fails(place: Place, attacks: Any, scratch: str) -> Rows:
        ran.append(list(attacks))
        if attacks:
            raise ConfigError(f"{' and '.join(attacks)} ended it")
        return []

    monkeypatch.setattr(module, "_run", fails)
    place = Place("digits", "vertical-lr", UNDEFENDED, 1, 200)
    rows = module.measured(place, keyed(place, ["half", "zero"]), scratch=str(tmp_path))
    assert ran == [["half", "zero"], [], ["half"], ["zero"]]
    assert [row["reason"] for row in rows] == ["half ended it", "zero ended it"]


def test_an_attack_that_ends_its_run_is_found_by_halves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["half", "zero", "half_star", "lmmse", "ls", "cls", "rcc1", "rcc2"]
    trained: list[list[str]] = []

    def fails(place: Place, attacks: Any, scratch: str) -> Rows:
        if "ls" in attacks:
            raise ConfigError("ls ended it")
        trained.append(list(attacks))
        return [{"attack": name, "figure": 0.5} for name in attacks]

    monkeypatch.setattr(module, "_run", fails)
    place = Place("digits", "vertical-lr", UNDEFENDED, 2, 200)
    rows = module.measured(place, keyed(place, names), scratch=str(tmp_path))
    assert trained == [[], names[:4], ["cls"], names[6:]]
    assert [row["attack"] for row in rows if "reason" in row] == ["ls"]
    assert {row["attack"] for row in rows} == set(names)
