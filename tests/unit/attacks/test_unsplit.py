"""What embeddings alone show: which rows are alike, not what stands in them."""

from __future__ import annotations

import numpy as np
import torch
from inversionview import recorded_view

from vflens.attacks.unsplit import UnSplit
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom
from vflens.types import Array, ColumnInfo, Estimate

NETWORK = SplitNetwork(architecture="mlp", width=8, precision="float64")
COLUMNS = tuple(ColumnInfo(f"c{i}", 0.0, 1.0) for i in range(4))
ROWS = np.arange(60, dtype=np.int32)


def _embeddings(x: Array) -> Array:
    torch.manual_seed(3)
    with torch.no_grad():
        h: Array = bottom(NETWORK, COLUMNS).double()(torch.tensor(x)).numpy()
    return h


def _found(h: Array, **settings: int) -> Estimate:
    view = recorded_view(NETWORK, COLUMNS, ROWS, predicted=[(ROWS, h)], disclosed={})
    return UnSplit(**settings).reconstruct(view, rng=np.random.default_rng(1))


def _distances(x: Array) -> Array:
    pairs = np.triu_indices(len(x), 1)
    apart: Array = np.linalg.norm(x[:, None] - x[None], axis=2)[pairs]
    return apart


def test_rows_that_are_alike_are_found_alike() -> None:
    """Distances between rows come back; those of other rows do not go with them."""
    x, others = np.random.default_rng(0).random((2, 60, 4))
    found = _distances(_found(_embeddings(x)).values)
    assert np.corrcoef(found, _distances(x))[0, 1] > 0.5
    assert abs(np.corrcoef(found, _distances(others))[0, 1]) < 0.2


def test_more_rounds_explain_the_embeddings_better() -> None:
    h = _embeddings(np.random.default_rng(0).random((60, 4)))
    few, many = (np.linalg.norm(_found(h, rounds=n).extras["residual"]) for n in (2, 50))
    assert many < 0.5 * few
    assert many < 0.2 * np.linalg.norm(h)
