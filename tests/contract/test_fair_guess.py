"""Wherever an adversary knows rows, what its attacks find stands beside what its own columns say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import federation

from vflens.attacks.imputation import Imputation
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
