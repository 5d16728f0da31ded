"""Imputation stands among the blind guesses, from made-up records."""

from __future__ import annotations

from pathlib import Path

import pytest
from runfolder import scores, write_run

from vflens.experiments.results.record import read_runs
from vflens.experiments.results.results import BLIND_GUESSES, column_errors, final
from vflens.experiments.results.verdict import verdict


@pytest.mark.parametrize(
    ("imputed", "blind", "guess"),
    [(0.03, 0.03, "imputation"), (0.09, 0.08, "column_means"), (None, 0.08, "column_means")],
)
def test_the_best_guess_counts_whichever_it_is(
    tmp_path: Path, imputed: float | None, blind: float, guess: str
) -> None:
    errors = {"mean_star": 0.04} | ({} if imputed is None else {"imputation": imputed})
    run = read_runs([write_run(tmp_path, errors)])[0]
    found = {r.attack: r for r in final(run)}
    attack = found["mean_star"]
    assert (attack.blind, attack.blind_guess) == (blind, BLIND_GUESSES[guess])
    assert attack.better == (blind > 0.05)
    assert {e.blind for e in column_errors(run, attack)} == {blind}
    assert not any(r.better for name, r in found.items() if name == "imputation")


def test_the_verdict_names_the_guess_that_an_attack_must_beat(tmp_path: Path) -> None:
    text = verdict(read_runs([write_run(tmp_path, {"mean_star": 0.02, "imputation": 0.03})]))
    assert "imputation from the adversary's own columns" in " ".join([text.headline, *text.others])


def test_a_guess_of_another_milestone_does_not_count(tmp_path: Path) -> None:
    extra = [m for m in scores({"imputation": 0.01}, rows=100) if m["metric"] == "mse"]
    run = read_runs([write_run(tmp_path, {"mean_star": 0.04}, extra=extra)])[0]
    assert {r.attack: r.blind for r in final(run)}["mean_star"] == 0.08
