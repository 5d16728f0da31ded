"""The scoreboard: what is run and kept, the rule of its verdicts, its page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vflens.experiments.scoreboard import cells as module
from vflens.experiments.scoreboard.cells import kept, keyed, missing, scored
from vflens.experiments.scoreboard.grid import FEDERATIONS, UNDEFENDED, Grid, Place
from vflens.experiments.scoreboard.page import page
from vflens.experiments.scoreboard.sources import digest
from vflens.experiments.scoreboard.verdicts import Found, best, cost, over_seeds, protection, success
from vflens.experiments.sweeps.pool import Pool, Rows
from vflens.registry import ATTACKS, DEFENSES


def grid(*attacks: str) -> Grid:
    chosen = attacks or ("lmmse", "gradient_sign")
    return Grid(("digits",), ("vertical-lr",), chosen, ("passport", "round_scores"), seeds=2)


def found(*relative: float, attack: str = "some") -> Found:
    return Found(attack, "MSE", relative, (1.0,) * len(relative), relative)


def test_a_tiny_scoreboard_resumes_keeps_its_results_and_says_what_they_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[Place, list[str]]] = []
    whole = module.measured

    def counted(place: Place, attacks: Any, *, scratch: str) -> Rows:
        ran.append((place, sorted(attacks)))
        if len(ran) == 3:
            raise KeyboardInterrupt
        return whole(place, attacks, scratch=scratch)

    monkeypatch.setattr(module, "measured", counted)
    pool = Pool(tmp_path / "kept")
    with pytest.raises(KeyboardInterrupt):
        scored(grid(), pool)
    assert len(missing(grid(), pool)) == 4
    part = page(grid(), kept(grid(), pool), missing(grid(), pool), {})
    assert "Not complete: 4 federations" in part
    assert "| no defence |" in part
    assert "| round_scores |" not in part
    rows = scored(grid(), pool)
    assert len(ran) == 7  # two before, the interrupted one, and the four that were missing
    assert len(scored(grid(), pool)) == len(rows)
    assert len(ran) == 7
    scored(grid("lmmse", "gradient_sign", "half"), pool)
    assert [names for _, names in ran[7:]] == [["half"]] * 6  # a new attack costs its own runs only
    plain = {(r["attack"], r["seed"]): r["figure"] for r in rows if r["defense"] == UNDEFENDED}
    assert plain["gradient_sign", 1] == plain["gradient_sign", 2] == 1.0  # c − y shows every label
    text = page(grid(), rows, {}, {})
    verdict = next(line for line in text.splitlines() if line.startswith("| round_scores |"))
    assert "| hides nothing (gradient_sign, 0.00) |" in verdict  # it changes scores, no gradients
    assert "`passport`: defence 'passport' at 'active' has nothing to act on" in text


def test_an_attack_that_sends_has_a_run_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    def told(place: Place, attacks: Any, *, scratch: str) -> Rows:
        ran.append(sorted(attacks))
        return [{**place._asdict(), "key": key, "attack": name} for name, (key, _) in attacks.items()]

    monkeypatch.setattr(module, "measured", told)
    scored(
        Grid(("digits",), ("vertical-split",), ("fsha", "half", "zero"), (), seeds=1), Pool(tmp_path / "kept")
    )
    assert sorted(ran) == [["fsha"], ["half", "zero"]]
    assert module._experiment(Place("digits", "vertical-split", UNDEFENDED, 1), ["fsha"])["malicious"] is True
    assert "malicious" not in module._experiment(Place("digits", "vertical-split", UNDEFENDED, 1), ["half"])


def test_a_data_set_that_is_not_here_is_named() -> None:
    text = page(grid(), [], {}, {"digits": "VFLENS_DATA is not set"})
    assert "Not run: VFLENS_DATA is not set." in text


def test_attacks_and_defences_find_their_places_by_what_they_declare() -> None:
    vertical, clients = FEDERATIONS["vertical-lr"], FEDERATIONS["horizontal"]
    assert vertical.attack("gradient_sign") == {"name": "gradient_sign", "at": "passive"}
    assert vertical.attack("half_star") == {"name": "half_star"}
    assert vertical.attack("dlg") is None
    assert clients.attack("half_star") is None
    assert [d["at"] for d in vertical.defended_by("round_scores")] == ["coordinator"]
    assert [d["at"] for d in vertical.defended_by("label_dp")] == ["active"]
    assert [d["at"] for d in clients.defended_by("sparsification")] == ["client-1", "client-2"]
    assert vertical.defended_by("gaussian_scores")[0]["sigma"] == 1.0  # the middle of its strengths


def test_a_result_is_kept_under_its_settings_and_code() -> None:
    place = Place("digits", "vertical-lr", "label_dp", 1)
    keys = {key for p in (place, place._replace(seed=2)) for key, _ in keyed(p, ["lmmse", "half"]).values()}
    assert len(keys) == 4
    assert digest(ATTACKS.get("wmi")) != digest(DEFENSES.get("label_dp"))


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ((0.9, 1.2, 0.9), "hides all"),
        ((0.2, 0.21, 0.19), "hides nothing (some, 0.20)"),
        ((0.5, 0.51, 0.49), "hides part (some, 0.50)"),
    ],
)
def test_a_defence_is_judged_by_the_best_attack(after: tuple[float, ...], words: str) -> None:
    assert protection([found(*after)], [found(0.14, 0.15, 0.16)]) == words


def test_words_of_attacks_and_costs() -> None:
    assert success(found(0.01, 0.02, 0.01)) == "finds nearly all"
    assert success(found(0.5, 0.52, 0.51)) == "finds part (0.51)"
    # Student's t, two degrees of freedom: 4.303 · s / √3 = .430 around .9
    assert success(found(0.7, 0.95, 1.05)) == "no better than blind"
    assert best([found(0.3, 0.31), found(0.2, 0.2, attack="strong")]) == found(0.2, 0.2, attack="strong")
    assert protection([], [found(0.1, 0.1)]) == "nothing was scored"
    assert protection([found(1.0, 1.1)], [found(1.0, 1.2)]) == "nothing to hide"
    assert protection([found(0.3, 0.3)], [found(1.0, 1.2)]) == "opens to some"
    assert cost({1: 0.7, 2: 0.71}, {1: 0.8, 2: 0.81}) == "at a cost of 0.10 accuracy"
    assert cost({1: 0.7, 2: 0.9}, {1: 0.8, 2: 0.81}) == "at no measured cost"
    assert cost({1: 0.7}, {1: 0.8}) == "at an unknown cost"


def test_a_seed_counts_once_and_the_worse_rows_count() -> None:
    rows = [
        {
            "attack": "a",
            "measure": "MSE",
            "rows": kind,
            "seed": seed,
            "figure": value,
            "blind": 1.0,
            "relative": value,
        }
        for kind, seed, values in (("train", 1, (0.2, 0.4)), ("train", 2, (0.5,)), ("predict", 1, (0.9,)))
        for value in values
    ]
    averaged = over_seeds(rows)
    assert averaged is not None
    assert averaged.relative == pytest.approx((0.3, 0.5))
