"""Models trained together are those trained one after the other, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vflens.models.alone import train_alone
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.part import Keys, Site, plain
from vflens.models.settings import Training
from vflens.models.together import scores_of_own_rows
from vflens.types import Array, ColumnInfo


@pytest.mark.parametrize(
    ("shape", "settings", "holds_bias"),
    [
        ((30, 5, 3), {"learning_rate": 0.1}, True),
        ((30, 16, 10), {"optimizer": "sgd", "learning_rate": 0.5, "l2": 0.01}, True),
        ((7, 1, 2), {"learning_rate": 0.1, "l2": 0.1, "penalise_bias": False}, True),
        ((1, 3, 2), {"optimizer": "sgd", "learning_rate": 0.1}, True),
        ((130, 4, 12), {"learning_rate": 0.01, "epochs": 60}, False),
    ],
    ids=["adam", "sgd", "one column", "one row", "no bias"],
)
def test_models_trained_together_are_those_trained_apart(
    shape: tuple[int, int, int], settings: dict[str, Any], holds_bias: bool
) -> None:
    m, d, k = shape
    rng = np.random.default_rng(m)
    table, labels = rng.random((2 * m, d)), rng.integers(0, k, 2 * m)
    rows = rng.integers(0, 2 * m, (6, m)).astype(np.int32)
    site = Site(
        party="me",
        columns=[ColumnInfo(f"x{i}", 0, 1) for i in range(d)],
        features=d,
        classes=k,
        training=Training(**{"epochs": 3, "batch_size": 8, **settings}),
        keys=Keys.under(b"no layer draws"),
        wrap=plain,
        device="cpu",
        received=k,
        holds_bias=holds_bias,
    )
    one, together = np.random.default_rng(4), np.random.default_rng(4)

    def apart(own: Array) -> Array:
        return train_alone(SOFTMAX_REGRESSION, site, table.__getitem__, labels, own, rng=one)(own)

    expected = [apart(own) for own in rows]
    found = scores_of_own_rows(SOFTMAX_REGRESSION, site, table, labels, rows, rng=together)
    np.testing.assert_array_equal(found, expected)
    assert together.random() == one.random()
