"""Wherever an adversary knows rows, what its attacks find stands beside what its own columns say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import federation

from vflens.attacks.imputation import Imputation
from vflens.experiments.offline.attack import attack_recorded
from vflens.experiments.offline.score import score_estimate
from vflens.experiments.results.folders import read_party
from vflens.experiments.results.record import read_run
from vflens.plugins.views.vertical import AdversaryView
from vflens.storage.journal import Messages
from vflens.types import Array, ColumnInfo, Exchange, PartyInfo, Phase, Point, Released, Role

ROWS: dict[str, Any] = {"what": "auxiliary", "to": "active", "rows": 20}
PARAMETERS: dict[str, Any] = {"what": "parameters", "to": "active"}


@pytest.mark.parametrize(
    ("attacks", "grants", "guessed"),
    [
        (["half_star"], [PARAMETERS, ROWS], {("imputation", "predict")}),
        (["agnostic"], [PARAMETERS, ROWS], {("imputation", "predict"), ("imputation", "train")}),
        (["half_star"], [PARAMETERS], set()),
        (["imputation"], [ROWS], {("imputation", "predict"), ("imputation", "train")}),
        ([], [ROWS], set()),
    ],
    ids=["predictions", "training too", "no known rows", "asked for", "no attack"],
)
def test_known_rows_make_the_guess_without_being_asked(
    tmp_path: Path, attacks: list[str], grants: list[dict[str, Any]], guessed: set[tuple[str, str]]
) -> None:
    local = federation(tmp_path, attacks=[{"name": n} for n in attacks], disclose=grants)
    local.run()
    run = read_run(tmp_path)
    found = {(r.attack, r.scored_set) for r in run.results if r.attack == "imputation"}
    assert found == guessed
    assert run.skipped == ()
    for r in run.results:
        own = [o.mse for o in run.results if (o.attack, o.scored_set) == ("imputation", r.scored_set)]
        assert all(r.blind <= mse for mse in own)


def _attacked(tmp_path: Path) -> tuple[dict[str, Any], Array]:
    """What half* says of a run that attacked nothing itself; the target's columns."""
    local = federation(tmp_path, attacks=[], disclose=[PARAMETERS, ROWS])
    local.run()
    facts = attack_recorded(tmp_path / "active", "half_star", None, tmp_path / "guess.npz")
    truth: Array = local.passive["passive"].run.truth[:]
    return facts, truth


def test_an_attack_on_a_record_makes_the_guess_too_and_both_are_scored(tmp_path: Path) -> None:
    facts, truth = _attacked(tmp_path)
    file, config = tmp_path / "guess.imputation.npz", tmp_path / "passive" / "config.toml"
    assert facts["fair_guess"] == str(file)
    scored, own = (score_estimate(f, config) for f in (tmp_path / "guess.npz", file))
    assert own["attack"] == "imputation"
    assert scored["blind_mse"] <= own["mse"] != scored["mse"]
    assert min(column["blind_mse"] for column in scored["columns"].values()) > 1e-6
    with np.load(file) as kept:
        arrays = dict(kept)
    np.savez(file, **{**arrays, "values": truth[arrays["rows"]]})  # as if own columns said all
    again = score_estimate(tmp_path / "guess.npz", config)
    assert (again["mse"], again["blind_guess"]) == (scored["mse"], "imputation")
    assert again["blind_mse"] < 1e-12
    assert max(column["blind_mse"] for column in again["columns"].values()) < 1e-12


@pytest.mark.parametrize("attack", ["imputation", "half_star"])
def test_nothing_is_guessed_beside_the_guess_or_without_known_rows(tmp_path: Path, attack: str) -> None:
    known = attack == "imputation"
    federation(tmp_path, attacks=[], disclose=[PARAMETERS, *([ROWS] if known else [])]).run()
    facts = attack_recorded(tmp_path / "active", attack, None, tmp_path / "guess.npz")
    assert "fair_guess" not in facts
    assert [file.name for file in tmp_path.glob("*.npz")] == ["guess.npz"]


def test_a_guess_of_other_rows_is_not_scored_with_an_estimate(tmp_path: Path) -> None:
    _attacked(tmp_path)
    file = tmp_path / "guess.imputation.npz"
    with np.load(file) as kept:
        arrays = dict(kept)
    np.savez(file, **{**arrays, **{name: arrays[name][:-1] for name in ("rows", "values", "status")}})
    score_estimate(tmp_path / "guess.npz", tmp_path / "passive" / "config.toml")
    scored = read_party(tmp_path / "passive").metrics
    assert {m.attack for m in scored if m.name == "mse"} == {"half_star"}


def _view(own: Array, x: Array, known: int, columns: tuple[ColumnInfo, ...]) -> AdversaryView:
    rows = np.arange(known, dtype=np.int32)
    exchange = Exchange("run", Phase.DISCLOSE, 1, 5)
    granted = Released("passive", exchange, Point.AUXILIARY, rows, tensors={"features": x[:known]})
    return AdversaryView(
        party="active",
        target="passive",
        rows=np.arange(known, len(x), dtype=np.int32),
        n_classes=2,
        transcript=Messages([granted]),
        own={"features": own},
        parties=[
            PartyInfo("active", Role.ACTIVE, n_classes=2),
            PartyInfo("passive", Role.PASSIVE, columns=columns),
        ],
        needs=Imputation.needs,
        phases=frozenset(Phase),
    )


def test_a_value_is_moved_into_its_alphabet_where_that_errs_less_on_rows_left_out() -> None:
    """One column is told by the own ones but for its steps, the other is a coin that nothing tells."""
    rng = np.random.default_rng(0)
    own = rng.random((2000, 1))
    steps = np.round(own[:, 0] * 4) / 4
    coin = (rng.random(2000) < 0.3).astype(float)
    columns = (
        ColumnInfo("steps", 0.0, 1.0, alphabet=(0, 0.25, 0.5, 0.75, 1)),
        ColumnInfo("coin", alphabet=(0, 1)),
    )
    x = np.column_stack([steps, coin])
    values = Imputation().reconstruct(_view(own, x, 200, columns), rng=rng).values
    errors = ((values - x[200:]) ** 2).mean(axis=0)
    assert errors[0] < 3e-3  # the straight line alone leaves (1/4)²/12 = .005
    assert errors[1] == pytest.approx(0.21, abs=0.02)  # p(1 − p): moved to 0 it would be .3
