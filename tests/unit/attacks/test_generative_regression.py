"""The generator of unknown columns, where what it has to learn is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from inversionview import recorded_view
from laboratory import federation, figures
from scipy.special import log_softmax, softmax
from torch import nn

from vflens.attacks.grna import GenerativeRegression, _linear_misfit
from vflens.attacks.helpers.networks.inversion import array
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom, top
from vflens.models.networks.parameters import to_arrays
from vflens.numerics.linear_system import LinearSystem
from vflens.plugins.views.vertical import AdversaryView
from vflens.storage.journal import Messages
from vflens.types import (
    Array,
    ColumnInfo,
    Exchange,
    PartyInfo,
    Phase,
    Point,
    Released,
    Role,
    RowStatus,
)

N, K = 300, 4
QUICK: dict[str, Any] = {"variance": 0, "hidden": (64,), "learning_rate": 0.01}
ROWS = np.arange(N, dtype=np.int32)


def _error(*, related: bool) -> float:
    """Two unknown columns that three log-ratios determine, whether or not the own ones foretell them."""
    rng = np.random.default_rng(0)
    own = rng.random((N, 2))
    unknown = np.stack([own.mean(axis=1), 1 - own[:, 0]], axis=1) if related else rng.random((N, 2))
    weight, own_weight, bias = rng.normal(0, 3, (K, 2)), rng.normal(size=(K, 2)), rng.normal(size=K)
    scores = log_softmax(unknown @ weight.T + own @ own_weight.T + bias, axis=1)
    found = GenerativeRegression(**QUICK).reconstruct(
        _view(scores, own, {"weight": weight, "bias": bias}, own_weight), rng=np.random.default_rng(1)
    )
    assert (found.status == RowStatus.OK).all()
    return float(((found.values - unknown) ** 2).mean())


def _view(scores: Array, own: Array, parameters: dict[str, Array], own_weight: Array) -> AdversaryView:
    def released(sender: str, phase: Phase, point: Point, rows: Array, **tensors: Array) -> Released:
        return Released(sender, Exchange("run", phase, 0, 0), point, rows, tensors=tensors)

    columns = (ColumnInfo("a", 0.0, 1.0), ColumnInfo("b", 0.0, 1.0))
    return AdversaryView(
        party="me",
        target="target",
        rows=ROWS,
        n_classes=K,
        transcript=Messages(
            [
                released("coordinator", Phase.PREDICT, Point.SCORES, ROWS, scores=scores),
                released("target", Phase.DISCLOSE, Point.PARAMETERS, ROWS[:0], **parameters),
            ]
        ),
        own={"features": own, "parameters": own_weight},
        parties=[
            PartyInfo("me", Role.ACTIVE, n_classes=K),
            PartyInfo("target", Role.PASSIVE, columns=columns),
        ],
        needs=GenerativeRegression.needs,
        phases=frozenset(Phase),
    )


def test_columns_that_the_own_ones_foretell_are_learned_from_the_scores() -> None:
    """It never sees them; unrelated columns of the same spread it cannot tell row by row."""
    foretold, unrelated = _error(related=True), _error(related=False)
    assert foretold < 2e-3
    assert unrelated > 0.04  # 1/12 is blind; it remembers some rows


def test_the_misfit_is_the_distance_of_the_models_scores() -> None:
    rng = np.random.default_rng(2)
    x, guess, weight, known = (
        rng.random((5, 3)),
        rng.random((5, 3)),
        rng.normal(size=(K, 3)),
        rng.normal(size=K),
    )
    scores = log_softmax(x @ weight.T + known, axis=1)
    ((_, system),) = LinearSystem.from_scores(scores, np.tile(known, (5, 1)), weight)
    found = _linear_misfit(system, torch.zeros(0, dtype=torch.float64))(torch.tensor(guess), np.arange(5))
    direct = ((softmax(guess @ weight.T + known, axis=1) - np.exp(scores)) ** 2).sum(axis=1)
    np.testing.assert_allclose(found, direct, rtol=1e-9)
    without = LinearSystem(system.A, system.b, saturated=False)
    squares = _linear_misfit(without, torch.zeros(0, dtype=torch.float64))(torch.tensor(guess), np.arange(5))
    np.testing.assert_allclose(squares, (((guess - x) @ system.A.T) ** 2).sum(axis=1), rtol=1e-9)


@pytest.mark.facts
def test_of_a_split_network_it_learns_through_both_models() -> None:
    """The target's bottom was disclosed; the own top gives the scores of the embeddings received."""
    network = SplitNetwork(architecture="mlp", width=12, top=(), precision="float64")
    columns, rng = (ColumnInfo("a", 0.0, 1.0), ColumnInfo("b", 0.0, 1.0)), np.random.default_rng(0)
    own = rng.random((N, 2))
    unknown = np.stack([own.mean(axis=1), 1 - own[:, 0]], axis=1)
    torch.manual_seed(3)
    theirs, mine = bottom(network, columns).double(), bottom(network, columns).double()
    head = top(network, 12, K, [columns, columns])
    for parameter in (*theirs.parameters(), *mine.parameters(), *head.parameters()):
        nn.init.normal_(parameter)
    h = array(theirs.eval()(torch.tensor(unknown)))
    parts = {
        "bottom": to_arrays(dict(mine.named_parameters())),
        "top": to_arrays(dict(head.named_parameters())),
    }
    view = recorded_view(
        network,
        columns,
        ROWS,
        predicted=[(ROWS, h)],
        disclosed={Point.PARAMETERS: (ROWS[:0], to_arrays(dict(theirs.named_parameters())))},
        n_classes=K,
        own={"features": own} | {f"network/{p}.{n}": a for p, of in parts.items() for n, a in of.items()},
        parties=[
            PartyInfo("me", Role.ACTIVE, columns=columns),
            PartyInfo("target", Role.PASSIVE, columns=columns),
        ],
        needs=GenerativeRegression(model="network").declared().needs,
    )
    found = GenerativeRegression(
        model="network", **QUICK | {"learning_rate": 0.03}, learning_steps=300
    ).reconstruct(view, rng=np.random.default_rng(1))
    assert ((found.values - unknown) ** 2).mean() < 0.5 * unknown.var(axis=0).mean()


def test_in_a_federation_it_needs_no_more_than_parameters(tmp_path: Path) -> None:
    federation(
        tmp_path,
        model={"architecture": "mlp", "width": 4, "top": [6], "combine": "concatenate"},
        attacks=[{"name": "grna", "model": "network", "learning_steps": 2, "hidden": [8]}],
    ).run()
    found = figures(tmp_path / "passive")
    assert 0 < found["mse", "grna", ""] < 1
    assert found["unusable", "grna", ""] == 0
