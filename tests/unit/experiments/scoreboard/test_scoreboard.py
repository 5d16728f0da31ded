"""The scoreboard: what is run and kept, the rule of its verdicts, its page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scoreboard_page import page
from sklearn.datasets import load_digits

from vflens.experiments.run.in_process import LocalFederation
from vflens.experiments.scoreboard import cells as module
from vflens.experiments.scoreboard import keys, sources
from vflens.experiments.scoreboard.board import boards
from vflens.experiments.scoreboard.cells import kept, missing, scored
from vflens.experiments.scoreboard.explorer import reasons, verdicts
from vflens.experiments.scoreboard.grid import FEDERATIONS, NUMBER, UNDEFENDED, Place, ScoreboardGrid
from vflens.experiments.scoreboard.keys import experiment_of, keyed
from vflens.experiments.scoreboard.sources import digest
from vflens.experiments.sweeps.pool import Pool, Rows, write_rows
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.registry import ATTACKS, DEFENSES, MODELS
from vflens.types import Estimate


def grid(*attacks: str) -> ScoreboardGrid:
    chosen = attacks or ("lmmse", "gradient_sign")
    return ScoreboardGrid(
        ("digits",), ("vertical-lr",), chosen, ("passport", "round_scores"), seeds=2, cost_seeds=1
    )


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
    assert len(missing(grid(), pool)) == 7
    part = page(grid(), kept(grid(), pool))
    text = (
        "**Missing**: Vertical, softmax regression, digits: no costs with no defence. `make scoreboard` runs"
    )
    assert text in " ".join(part.split())
    rows = scored(grid(), pool)
    assert len(ran) == 10  # two before, the interrupted one, and the seven that were missing
    assert len(scored(grid(), pool)) == len(rows)
    assert len(ran) == 10
    scored(grid("lmmse", "gradient_sign", "half"), pool)
    assert [names for _, names in ran[10:]] == [["half"]] * 6  # a new attack costs its own runs only
    plain = {
        (r["attack"], r["seed"]): r["figure"] for r in rows if r["defense"] == UNDEFENDED and "blind" in r
    }
    assert plain["gradient_sign", 1] == plain["gradient_sign", 2] == 1.0  # c − y shows every label
    text = page(grid(), rows)
    assert "**Missing**" not in text
    (board,) = boards(rows, grid())
    prices = {defense: board.cost(defense) for defense in board.found}
    (verdict,) = (line for line in verdicts(board, prices).rows if line[0] == "round_scores")
    assert (
        " ".join(verdict).count("no verdict: 2 of at least 5 results") == 2
    )  # columns and labels: two seeds
    assert verdict[2] == "not measured (1 of at least 5 results)"
    assert board.by_defense["passport"][0]["reason"].startswith("defence 'passport' at 'active' has nothing")


@pytest.mark.facts
def test_results_of_another_checkout_are_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = Pool(tmp_path / "here"), Pool(tmp_path / "there")
    rows = _said(scored(grid("half"), here))
    write_rows(here.folder / "all.parquet", rows)  # each result is in two files now
    assert _said(kept(grid("half"), here)) == rows
    there.folder.mkdir()
    (here.folder / "all.parquet").rename(there.folder / "all.parquet")
    monkeypatch.setattr(module, "measured", pytest.fail)
    assert _said(scored(grid("half"), there)) == rows
    assert len({r["key"] for r in rows}) == 9  # three defences: two seeds with an attack, one for costs


@pytest.mark.parametrize("changed", [[], ["half"], ["half", "zero"]])
def test_code_that_gives_the_bits_of_the_first_seed_again_keeps_the_others(
    changed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another digest of the code: what gives other bits on the first seed runs on all, else on that alone."""
    ran: list[tuple[int, str]] = []
    moved: list[str] = []

    def told(place: Place, attacks: Any, *, scratch: str) -> Rows:
        ran.extend((place.seed, name) for name in attacks)
        return [
            {
                **place._asdict(),
                "key": key,
                "attack": name,
                "figure": place.seed / 7 + 1e-16 * (name in moved),
            }
            for name, (key, _) in attacks.items()
        ]

    monkeypatch.setattr(module, "measured", told)
    small = ScoreboardGrid(("digits",), ("vertical-lr",), ("half", "zero"), (), seeds=3, cost_seeds=0)
    pool = Pool(tmp_path / "kept")
    before = scored(small, pool)
    assert len(ran) == 6
    published = [{**row, "estimates": "features", "needs": "parameters"} for row in before]
    for file in pool.folder.glob("*.parquet"):
        file.unlink()
    write_rows(pool.folder / "published.parquet", published)
    ran.clear()
    moved.extend(changed)
    monkeypatch.setattr(keys, "_code", lambda registry, name, apart: f"new {name}")
    rows = scored(small, pool)
    again = [(seed, name) for seed in (1, 2, 3) for name in ("half", "zero") if seed == 1 or name in changed]
    assert sorted(ran) == sorted(again)
    assert [r["attack"] for r in rows] == [r["attack"] for r in before]
    assert not {r["key"] for r in rows} & {r["key"] for r in before}
    assert {r["key"] for r in rows} == {
        key for p in small.places("vertical-lr", "digits") for key, _ in keyed(p, small.attacks).values()
    }
    assert len(scored(small, pool)) == 6
    assert len(ran) == len(again)


@pytest.mark.parametrize("name", FEDERATIONS)
def test_a_key_has_the_code_of_its_family_alone(name: str) -> None:
    """A clear place has nothing of protected training, and no place the code of another family."""
    settings = Place(FEDERATIONS[name].data[0], name, UNDEFENDED, 1).settings()
    family = settings.get("model", {}).get("family", "softmax_regression")
    protected = "protection" in settings["training"]
    apart = keys._apart(family, protected=protected)
    reached = {unit[0] for unit in sources._reached(MODELS.get(family), apart)}
    by_attack = {unit[0] for unit in sources._reached(ATTACKS.get("dlg"), apart)}
    families = {MODELS.get(one).__module__ for one in MODELS.names()}
    assert reached & families == {MODELS.get(family).__module__}
    assert by_attack & families <= {MODELS.get(family).__module__}
    assert any(one.startswith("vflens.numerics.shares.") for one in reached) is protected


def _said(rows: Rows) -> Rows:
    """``rows`` without the empty cells of their table."""
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def test_an_attack_that_sends_has_a_run_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    def told(place: Place, attacks: Any, *, scratch: str) -> Rows:
        ran.append(sorted(attacks))
        return [{**place._asdict(), "key": key, "attack": name} for name, (key, _) in attacks.items()]

    monkeypatch.setattr(module, "measured", told)
    scored(
        ScoreboardGrid(("digits",), ("vertical-split",), ("fsha", "half", "zero"), (), seeds=1, cost_seeds=0),
        Pool(tmp_path / "kept"),
    )
    assert sorted(ran) == [["fsha"], ["half", "zero"]]
    settings = Place("digits", "vertical-split", UNDEFENDED, 1).settings()
    assert experiment_of(settings, ["fsha"])["malicious"] is True
    assert "malicious" not in experiment_of(settings, ["half"])


def test_a_section_that_was_not_run_is_named() -> None:
    text = page(grid(), [])
    words = "**Missing**: Vertical, softmax regression, digits: not run yet. `make scoreboard` runs it."
    assert words in " ".join(text.split())


def test_a_refused_defence_is_not_named_again_with_each_attack() -> None:
    place = {"data": "digits", "federation": "vertical-lr", "seed": 1, "defense": "passport"}
    rows = [
        {**place, "attack": "lmmse", "reason": "no layers", "refused": True},
        {**place, "attack": "fsha", "reason": "no layers", "refused": False},
        {**place, "attack": "pcat", "reason": "no 5 rows (first: 2) came", "refused": False},
        {**place, "attack": "pcat", "reason": "no 5 rows (first: 3) came", "refused": False},
        {**place, "attack": "half", "defense": UNDEFENDED, "measure": "MSE", "rows": "predict"}
        | {"figure": 0.5, "blind": 1.0, "reason": None},
    ]
    rows += [{**rows[3], "attack": "urvfl", "defense": UNDEFENDED}] * 2
    section = "Vertical, softmax regression, digits"
    assert [*reasons(rows)] == [f"{section}, passport: no layers", f"{section}, urvfl: no 5 rows came"]


def test_attacks_and_defences_find_their_places_by_what_they_declare() -> None:
    vertical, clients = FEDERATIONS["vertical-lr"], FEDERATIONS["horizontal"]
    assert vertical.attack("gradient_sign", "bank") == {"name": "gradient_sign", "at": "passive"}
    assert vertical.attack("half_star", "bank") == {"name": "half_star"}
    assert vertical.attack("dlg", "bank") is None
    assert clients.attack("half_star", "bank") is None
    assert [d["at"] for d in vertical.defended_by("round_scores")] == ["coordinator"]
    assert [d["at"] for d in vertical.defended_by("label_dp")] == ["active"]
    assert [d["at"] for d in clients.defended_by("sparsification")] == ["client-1", "client-2"]
    assert vertical.defended_by("gaussian_scores")[0]["sigma"] == 1.0  # the middle of its strengths


def test_an_attack_that_believes_something_of_a_row_has_it_from_another_draw() -> None:
    clients = FEDERATIONS["horizontal"]
    table, plain = clients.attack("imprint", "digits"), clients.attack("dlg", "digits")
    pixels = load_digits().data / 16
    assert table is not None
    assert table["mean"] == pytest.approx(pixels.mean(), abs=0.02)
    assert table["deviation"] == pytest.approx(pixels.mean(axis=1).std(), rel=0.4)
    assert plain is not None
    assert not {"mean", "deviation"} & plain.keys()


def test_means_are_compared_with_means_and_never_of_pixels(tmp_path: Path) -> None:
    """Where nothing shifted, the mean of granted rows is near: the blind guess errs by hundredths."""
    place = Place("diabetes", NUMBER, UNDEFENDED, 1, 200)
    names = ["property_guess", "property_embeddings", "half"]
    rows = module.measured(place, keyed(place, names), scratch=str(tmp_path))
    means = [r for r in rows if r["attack"] != "half"]
    assert {r["measure"] for r in rows if r["attack"] == "half"} == {"MSE"}
    assert {r["measure"] for r in means} == {"distance"}
    assert all(0 < r["blind"] <= r["figure"] < 0.5 for r in means if r["attack"] == "property_guess")
    assert len({r["blind"] for r in means if r["rows"] == "train"}) == 1  # one guess beside both attacks
    assert FEDERATIONS["vertical-lr"].attack("property_guess", "digits") is None


def test_a_result_is_kept_under_its_settings_and_code() -> None:
    place = Place("digits", "vertical-lr", "label_dp", 1)
    keys = {key for p in (place, place._replace(seed=2)) for key, _ in keyed(p, ["lmmse", "half"]).values()}
    assert len(keys) == 4
    assert digest(ATTACKS.get("wmi")) != digest(DEFENSES.get("label_dp"))


def test_a_guess_that_nobody_asked_for_has_no_row(tmp_path: Path) -> None:
    """A run with one attack makes the guess from known rows too: its row belongs to the run that asked."""
    place = Place("digits", "vertical-lr", UNDEFENDED, 1, 200)
    rows = module.measured(place, keyed(place, ["half_star"]), scratch=str(tmp_path))
    assert {row["attack"] for row in rows} == {"half_star"}


@pytest.mark.facts
def test_a_place_trains_once_for_all_that_read_and_once_for_each_that_sends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted where parties train, refused attacks among the others."""
    trained: list[object] = []
    run = LocalFederation.run

    def counted(self: LocalFederation) -> None:
        trained.append(self)
        run(self)

    monkeypatch.setattr(LocalFederation, "run", counted)
    names = ("confidence", "half", "zero", "gradient_sign", "known_scores", "fsha", "urvfl")
    scored(
        ScoreboardGrid(("digits",), ("vertical-split",), names, (), seeds=1, cost_seeds=0),
        Pool(tmp_path / "kept"),
    )
    assert len(trained) == 3


def test_the_same_view_is_not_attacked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a defence of scores, gradients are as before and scores are not; all figures are the same."""
    ran: list[str] = []

    def noted(name: str, reconstruct: Callable[..., Estimate]) -> Callable[..., Estimate]:
        def run(attack: Attack, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
            ran.append(name)
            return reconstruct(attack, view, rng=rng)

        return run

    names = ["gradient_sign", "lmmse"]
    for name in names:
        kind: Any = ATTACKS.get(name)
        monkeypatch.setattr(kind, "reconstruct", noted(name, kind.reconstruct))

    def found(*, together: bool) -> list[Rows]:
        ran.clear()
        rows: list[Rows] = []
        for defense in (UNDEFENDED, "round_scores"):
            if not (rows and together):
                module._remembered.cache_clear()
            place = Place("digits", "vertical-lr", defense, 1, 200)
            rows.append(module.measured(place, keyed(place, names), scratch=str(tmp_path)))
        return rows

    apart, before = found(together=False), Counter(ran)
    assert found(together=True) == apart
    assert before["gradient_sign"] == 2 * ran.count("gradient_sign") > 0
    assert before["lmmse"] == ran.count("lmmse") == 2
