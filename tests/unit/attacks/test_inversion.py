"""Where an inversion starts and which of its ends it keeps, against searches by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
from inversionview import inversion_view
from pydantic import ValidationError

from vflens.attacks.helpers.networks import inversion
from vflens.attacks.helpers.networks.inversion import Inversion
from vflens.attacks.wmi import WhiteBoxInversion
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom
from vflens.models.networks.parameters import to_arrays
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, ColumnInfo, Knowledge

D, N = 5, 20
COLUMNS = tuple(ColumnInfo(f"c{i}", 0.0, 1.0) for i in range(D))
NETWORK = SplitNetwork(architecture="mlp", hidden=(D,), width=8, precision="float64")
ROWS = np.arange(N, dtype=np.int32)


def _network(least: float) -> torch.nn.Module:
    """A network that is exactly flat where every column is below ``least``, and one-to-one where every column
    is above.
    """
    torch.manual_seed(2)
    model = bottom(NETWORK, COLUMNS)
    first, last = (m for m in model.modules() if isinstance(m, torch.nn.Linear))
    with torch.no_grad():
        first.weight.copy_(torch.eye(D)), first.bias.fill_(-least)
        last.weight.copy_(torch.eye(8, D)), last.bias.zero_()
    return model


def _view(
    model: torch.nn.Module, x: Array, granted: Array, columns: tuple[ColumnInfo, ...] = COLUMNS
) -> AdversaryView:
    with torch.no_grad():
        h = model(torch.tensor(x)).numpy()
    disclosed = to_arrays(dict(model.named_parameters()))
    return inversion_view(NETWORK, columns, embeddings=h, disclosed=disclosed, granted=granted)


def _reconstruct(attack: Inversion, view: AdversaryView) -> Any:
    return attack.reconstruct(view, rng=np.random.default_rng(1))


def test_a_network_that_is_flat_at_0_is_inverted() -> None:
    model, x = _network(0.3), np.random.default_rng(5).uniform(0.5, 1, (N, D))
    zero = torch.zeros((1, D), dtype=torch.float64, requires_grad=True)
    assert not torch.autograd.grad((model(zero) ** 2).sum(), zero)[0].any()
    view = _view(model, x, x)
    assert np.abs(_reconstruct(WhiteBoxInversion(), view).values - x).max() < 5e-3


def test_one_that_is_flat_at_the_first_start_too_is_inverted_from_another() -> None:
    """½ is below .55; one of 100 drawn points is above it everywhere."""
    model, x = _network(0.55), np.random.default_rng(5).uniform(0.75, 1, (N, D))
    view = _view(model, x, x)
    one = _reconstruct(WhiteBoxInversion(starts=1, steps=20), view)
    many = _reconstruct(WhiteBoxInversion(starts=100), view)
    np.testing.assert_array_equal(one.values, 0.5)
    assert one.extras["residual"].min() > 0.01
    assert np.abs(many.values - x).max() < 5e-3


def test_a_row_keeps_the_end_of_least_residual() -> None:
    model = bottom(NETWORK, COLUMNS)
    x, points = np.random.default_rng(5).random((N, D)), np.random.default_rng(6).random((4, D))
    view = _view(model, x, x)
    ends = [WhiteBoxInversion(starts=1, steps=30).inverted(view, model, p[None]) for p in points]
    together = WhiteBoxInversion(starts=4, steps=30).inverted(view, model, points)
    for row in range(N):
        best = min(ends, key=lambda e: e.extras["residual"][row])
        np.testing.assert_allclose(together.values[row], best.values[row], rtol=0, atol=1e-9)
        assert together.extras["residual"][row] == pytest.approx(best.extras["residual"][row], abs=1e-9)
    assert len({int(np.argmin([e.extras["residual"][r] for e in ends])) for r in range(N)}) > 1


def test_a_row_starts_at_the_granted_rows_of_nearest_embedding() -> None:
    """Steps that hardly move: the answer is the nearest granted row, found here one by one."""
    model, rng = _network(-0.1), np.random.default_rng(5)
    x, granted = rng.random((N, D)), rng.random((15, D))
    view = _view(model, x, granted)
    attack = WhiteBoxInversion(starts=2, steps=1, rate=1e-9)
    found = attack.inverted(view, model, granted).values
    with torch.no_grad():
        shown, h = model(torch.tensor(granted)).numpy(), model(torch.tensor(x)).numpy()
    for row in range(N):
        nearest = min(range(len(granted)), key=lambda i: float(np.linalg.norm(shown[i] - h[row])))
        np.testing.assert_allclose(found[row], granted[nearest], rtol=0, atol=1e-8)


def test_points_and_rows_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes as many at a time as memory is meant for, with the same answers."""
    model, rng = _network(0.3), np.random.default_rng(5)
    x, granted = rng.uniform(0.5, 1, (N, D)), rng.random((15, D))
    attack, view = WhiteBoxInversion(start="granted", starts=2, steps=20), _view(model, x, granted)
    whole = _reconstruct(attack, view).values
    monkeypatch.setattr(inversion, "_BATCH", {"cpu": 4})
    lengths, forward = set(), cast("Callable[..., torch.Tensor]", torch.nn.Sequential.forward)

    def noted(module: torch.nn.Sequential, rows: torch.Tensor) -> torch.Tensor:
        lengths.add(len(rows))
        return forward(module, rows)

    monkeypatch.setattr(torch.nn.Sequential, "forward", noted)
    np.testing.assert_allclose(_reconstruct(attack, view).values, whole, atol=1e-9)
    assert max(lengths) == 4


def test_an_inversion_from_granted_rows_reads_them_and_leaves_no_row_at_a_flat_start() -> None:
    """½ and 0 are flat, and no drawn point is above .55 everywhere; granted rows are."""
    model, rng = _network(0.55), np.random.default_rng(5)
    x, granted = rng.uniform(0.75, 1, (N, D)), rng.uniform(0.75, 1, (15, D))
    view = _view(model, x, granted)
    attack = WhiteBoxInversion(start="granted")
    assert attack.declared().needs == WhiteBoxInversion().declared().needs | {Knowledge.AUXILIARY}
    assert np.abs(_reconstruct(WhiteBoxInversion(), view).values - x).max() > 0.2
    assert np.abs(_reconstruct(attack, view).values - x).max() < 5e-3
    unmoved = _reconstruct(WhiteBoxInversion(start="granted", steps=1, rate=1e-9), view).values
    assert {int(np.abs(granted - row).sum(axis=1).argmin()) for row in unmoved} > {0}
    assert max(np.abs(granted - row).max(axis=1).min() for row in unmoved) < 1e-8
    with pytest.raises(ValidationError, match=r"all rows one: leave one of them out"):
        WhiteBoxInversion(start="granted", passport="joint")


@pytest.mark.parametrize("passport", ["none", "joint"])
def test_more_starts_never_leave_a_larger_residual(passport: Any) -> None:
    """Each row's without anything shared, the sum of squares with it."""
    x = np.random.default_rng(5).random((N, D))
    view = _view(_network(0.55), x, x)
    one, several, again = (
        _reconstruct(WhiteBoxInversion(passport=passport, starts=s, steps=40), view) for s in (1, 4, 4)
    )
    np.testing.assert_array_equal(several.values, again.values)
    before, after = one.extras["residual"], several.extras["residual"]
    assert (after**2).sum() < (before**2).sum()
    if passport == "none":
        assert (after <= before + 1e-9).all()


def test_embeddings_of_another_size_are_inverted_alike() -> None:
    """A model whose embedding is a thousandth leaves the answer to it, not to the total variation."""
    columns = tuple(ColumnInfo(f"p{i}", 0.0, 1.0, pixel=(i // 2, i % 2)) for i in range(4))
    x = np.random.default_rng(5).random((N, 4))
    answers = []
    for scale in (1.0, 1e-3):
        torch.manual_seed(2)
        model = bottom(NETWORK.model_copy(update={"hidden": ()}), columns)
        with torch.no_grad():
            for p in model.parameters():
                p.mul_(scale)
        view = _view(model, x, x, columns)
        answers.append(WhiteBoxInversion().inverted(view, model, np.full((1, 4), 0.5)).values)
    np.testing.assert_allclose(answers[0], answers[1], rtol=0, atol=1e-3)
