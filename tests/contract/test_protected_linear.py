"""Protected training of a number: bits of the twin without shares, and plain regression."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from laboratory import federation
from mutants import KINDS, trained
from test_protected import batches_of, columns, opened, parameters

from vflens.errors import ConfigError
from vflens.numerics.fixed_point import encoded
from vflens.numerics.shares.response import IDENTITY
from vflens.numerics.shares.scale import FEATURE_BITS, PARAMETER_BITS
from vflens.numerics.shares.step import twin
from vflens.protocol.vertical.shares import SharedRun

SETTINGS = KINDS["linear"]
TRAINING = SETTINGS["training"]


def test_the_model_has_the_bits_of_the_twin_and_is_linear_regression(tmp_path: Path) -> None:
    local = trained(tmp_path, kind="linear")
    run = SharedRun(local.coordinator.aligned)
    x, y = columns(local, run), local.active.run.labels[:, None]
    features, labels = encoded(x, FEATURE_BITS, 1), encoded(y, IDENTITY.bits, 1)
    theta, plain = np.zeros((run.width, 1), np.uint64), np.zeros((run.width, 1))
    coins = zip(opened(tmp_path, run, "logits"), opened(tmp_path, run, "change"), strict=True)
    for rows, (logits, change) in zip(batches_of(local, run), coins, strict=True):
        theta = twin(theta, (features[rows], labels[rows]), (logits, change), run.scale, run.decayed)
        decay = 2 * run.federation.training.l2 * plain
        gradient = 2 * x[rows].T @ (x[rows] @ plain - y[rows]) / len(rows) + decay
        plain -= run.scale.effective_rate(len(rows)) * gradient
    found = parameters(local, run)
    np.testing.assert_array_equal(found, theta.view(np.int64) * 2.0**-PARAMETER_BITS)
    assert np.abs(plain).max() > 0.1
    assert np.abs(found - plain).max() < 1e-3  # features have 16 fraction bits


def test_a_larger_rate_is_refused_with_the_largest_one(tmp_path: Path) -> None:
    local = federation(tmp_path, **SETTINGS | {"training": {**TRAINING, "learning_rate": 0.2}})
    with pytest.raises(
        ConfigError, match=r"training\.learning_rate = 0\.2 with linear .* take at most 0\.045"
    ):
        local.coordinator.prepare()
