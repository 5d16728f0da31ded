"""Bank and Adult, half of the columns each: what own columns say of the others, alone and beside an equation.

Figures of docs/attacks/lmmse.md. One seed draws the cut, the training rows, the known and the attacked ones.
"""

from __future__ import annotations

import numpy as np
import pytest
from datafiles import needs_file
from sklearn.linear_model import LogisticRegression

from vflens.attacks.lmmse import LinearMMSE
from vflens.attacks.mean_star import MeanStar
from vflens.datasets._resolve import dataset
from vflens.numerics.imputation import imputation
from vflens.numerics.shrinkage import estimated_moments, shrunk_covariance
from vflens.types import Array, Moments

SEEDS = 10
FILES = {"bank": "bank-additional-full.csv.gz", "adult": "adult.data.gz"}
#: Data set → known rows → mean squared errors of means, imputation, mean*, lmmse, lmmse given own columns.
PRINTED = {
    "bank": {30: (0.0899, 0.0765, 0.0850, 0.0802, 0.0703), 200: (0.0875, 0.0655, 0.0827, 0.0755, 0.0575)},
    "adult": {30: (0.0675, 0.0638, 0.0625, 0.0522, 0.0506), 200: (0.0654, 0.0600, 0.0604, 0.0487, 0.0463)},
}


def _scaled(name: str) -> tuple[Array, Array]:
    table = dataset(name, {}).prepared()
    x = np.asarray(table.features, float)
    low, high = x.min(axis=0), x.max(axis=0)
    varied = high > low
    return ((x - low) / np.where(varied, high - low, 1))[:, varied], np.asarray(table.labels)


def _errors(x: Array, y: Array, known: int, seed: int) -> tuple[float, ...]:
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(x)), rng.permutation(x.shape[1])
    own, unknown = np.sort(columns[: x.shape[1] // 2]), np.sort(columns[x.shape[1] // 2 :])
    model = LogisticRegression(C=10, max_iter=2000).fit(x[rows[:320]], y[rows[:320]])
    A = model.coef_[:, unknown]
    first = rows[320 : 320 + known] if known > 320 else rows[:known]
    some, (a, truth) = x[np.ix_(first, unknown)], (x[np.ix_(rows[2000:2300], of)] for of in (own, unknown))
    fit, moments = imputation(x[np.ix_(first, own)], some), Moments(*estimated_moments(some))
    beliefs = Moments(fit(a), shrunk_covariance(fit.left_out))
    values = [
        np.broadcast_to(moments.mean, truth.shape),
        fit(a),
        *(
            attack.solve(A, truth @ A.T, rng=rng, moments=believed).values
            for attack, believed in ((MeanStar(), moments), (LinearMMSE(), moments), (LinearMMSE(), beliefs))
        ),
    ]
    return tuple(float(((np.clip(v, 0, 1) - truth) ** 2).mean()) for v in values)


@pytest.mark.facts
@pytest.mark.parametrize("name", [pytest.param(n, marks=needs_file(f)) for n, f in FILES.items()])
@pytest.mark.parametrize("known", [30, 200])
def test_own_columns_tell_part_of_what_an_equation_seemed_to(name: str, known: int) -> None:
    x, y = _scaled(name)
    found = np.mean([_errors(x, y, known, seed) for seed in range(SEEDS)], axis=0)
    assert found == pytest.approx(PRINTED[name][known], abs=2e-4)
    means, imputed, mean_star, plain, given_own = found
    assert imputed < means
    assert given_own < min(plain, imputed)
    if known == 200:
        assert imputed < mean_star + 2e-4  # so that of mean* is no evidence of a leak
