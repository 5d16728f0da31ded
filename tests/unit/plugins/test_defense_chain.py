"""Defences folded over what leaves: in order, each with its own noise, each held to its contract and seen to
act.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from gates import Noise, chain_of, open_gate, positions, predict_step, scores_of, train_step
from laboratory import NOTHING

from vflens.defenses.gaussian_scores import GaussianScores
from vflens.defenses.withhold_parameters import WithholdParameters
from vflens.errors import DefenseError, PluginError
from vflens.member.gate import ReleaseGate
from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Exchange, Owner, Phase, Point


class Affine(Defense):
    """Shows in which order defences were folded."""

    factor: float = 1.0
    shift: float = 0.0

    def on_embedding(self, h: Array, ctx: Context) -> Array:
        return self.factor * h + self.shift


class Fitted(Defense):
    """Adds what it drew when it was fitted."""

    def fit(self, owner: Owner, rng: np.random.Generator) -> Mapping[str, Array]:
        return {"shift": rng.normal(size=1)}

    def on_embedding(self, h: Array, ctx: Context) -> Array:
        return h + ctx.state["shift"]


class Broken(Defense):
    """Answers whatever it was told to answer."""

    answer: str

    def on_embedding(self, h: Array, ctx: Context) -> Array:
        answers: dict[str, Callable[[], object]] = {
            "shorter": lambda: h[:-1],
            "transposed": lambda: h.T,
            "NaN": lambda: np.full_like(h, np.nan),
            "None": lambda: None,
            "list": h.tolist,
        }
        return answers[self.answer]()  # type: ignore[return-value]


class Everywhere(Defense):
    """Acts on a released table and on what its party reads of its own predictions."""

    def on_dataset(self, x: Array, ctx: Context) -> Array:
        return x + 1

    def on_outputs(self, z: Array, ctx: Context) -> Array:
        return z + 1


def _idle(gate: ReleaseGate) -> str:
    """The first defence that never acted."""
    with pytest.raises(DefenseError) as refusal:
        gate.check_fired()
    return str(refusal.value).split("'")[1]


def test_withheld_parameters_stay_withheld_and_end_the_fold(tmp_path: Path) -> None:
    gate = open_gate(tmp_path, WithholdParameters(), Noise())
    exchange = Exchange("run", Phase.DISCLOSE, 1, 3)
    assert gate.release(Point.PARAMETERS, exchange, NOTHING, {"weight": np.ones((2, 2))}).tensors is None
    assert _idle(gate) == "Noise"


def test_defences_are_folded_in_configured_order(tmp_path: Path) -> None:
    orders = [
        (Affine(factor=3), Affine(shift=1)),
        (Affine(shift=1), Affine(factor=3)),
    ]
    for i, (defenses, expected) in enumerate(zip(orders, (7.0, 9.0), strict=True)):
        gate = open_gate(tmp_path / str(i), *defenses)
        released = gate.release(
            Point.EMBEDDING, train_step(0), positions(0), {"embedding": np.full((1, 1), 2.0)}
        )
        assert released.tensor("embedding").tolist() == [[expected]]


def test_two_defences_of_one_kind_draw_different_noise() -> None:
    once, twice = chain_of(Noise()), chain_of(Noise(), Noise())
    a = once.fold("on_embedding", np.zeros((3, 3)), train_step(0), positions(0, 1, 2))
    b = twice.fold("on_embedding", np.zeros((3, 3)), train_step(0), positions(0, 1, 2))
    assert not np.isclose(2 * a, b).any()


def test_a_defence_is_fitted_once() -> None:
    chain = chain_of(Fitted())
    a, b = (chain.fold("on_embedding", np.zeros((1, 1)), train_step(s), positions(0)) for s in (0, 1))
    assert a == b != 0


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("shorter", r"Broken.on_embedding must return an array of shape \(2, 3\), it returned \(1, 3\)"),
        ("transposed", r"must return an array of shape \(2, 3\), it returned \(3, 2\)"),
        ("None", r"must return an array of shape \(2, 3\), it returned None"),
        ("list", r"must return an array of shape \(2, 3\), it returned \[\["),
        ("NaN", r"Broken.on_embedding returned NaN: return −inf for impossible classes"),
    ],
)
def test_a_defence_that_breaks_its_contract_is_named(tmp_path: Path, answer: str, sentence: str) -> None:
    gate = open_gate(tmp_path, Broken(answer=answer))
    with pytest.raises(PluginError, match=sentence):
        gate.release(Point.EMBEDDING, train_step(0), positions(0, 1), {"embedding": np.ones((2, 3))})
    assert gate.answered(Point.EMBEDDING, train_step(0)) is None


class BrokenParameters(Defense):
    """Discloses a weight of the wrong shape, or NaN."""

    shape: tuple[int, ...]

    def on_parameters(self, w: Mapping[str, Array], ctx: Context) -> Mapping[str, Array]:
        return {"weight": np.full(self.shape, np.nan)}


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ((2, 2), "BrokenParameters.on_parameters returned NaN"),
        ((4,), r"BrokenParameters.on_parameters must return an array of shape \(2, 2\), it returned \(4,\)"),
    ],
)
def test_disclosed_parameters_are_checked_too(tmp_path: Path, shape: tuple[int, ...], sentence: str) -> None:
    exchange = Exchange("run", Phase.DISCLOSE, 1, 3)
    gate = open_gate(tmp_path, BrokenParameters(shape=shape))
    with pytest.raises(PluginError, match=sentence):
        gate.release(Point.PARAMETERS, exchange, NOTHING, {"weight": np.ones((2, 2))})


def test_minus_infinity_may_leave(tmp_path: Path) -> None:
    scores = np.array([[0.0, -np.inf, -np.inf]])
    gate = open_gate(tmp_path, GaussianScores())
    released = gate.release_rows(Point.SCORES, predict_step(0), positions(0), lambda r: scores)
    np.testing.assert_array_equal(released.tensor("scores"), scores)


def test_a_defence_that_never_acted_is_named(tmp_path: Path) -> None:
    gate = open_gate(tmp_path, Noise(), GaussianScores())
    assert _idle(gate) == "Noise"
    gate.release(Point.EMBEDDING, train_step(0), positions(0), {"embedding": np.ones((1, 3))})
    with pytest.raises(
        DefenseError,
        match=r"^defence 'GaussianScores' of 'party' never acted in this run: remove it, or configure what "
        r"it acts on$",
    ):
        gate.check_fired()
    scores_of(gate, 0, 1)
    gate.check_fired()


def test_a_defence_of_grants_alone_is_named_so_until_it_acts_on_the_wire() -> None:
    """The gradients of single rows are granted; those of a batch cross the wire."""
    chain, one = chain_of(Noise(), GaussianScores()), np.ones((1, 3))
    chain.fold("on_gradient", one, Exchange("run", Phase.DISCLOSE, 1, 3), positions(0))
    chain.fold("on_scores", np.log(one / 3), predict_step(0), positions(0))
    assert (chain.on_grants_only(), chain.unfired()) == (["Noise"], [])
    again = chain_of(Noise(), GaussianScores())
    again.restore(chain.acted)
    assert (again.on_grants_only(), again.unfired()) == (["Noise"], [])
    again.restore_hook("on_gradient")  # that an earlier process trained; grants are asked for anew
    assert again.on_grants_only() == []
    chain.fold("on_gradient", one, train_step(0), positions(0))
    assert chain.on_grants_only() == []


@pytest.mark.parametrize("hook", ["on_dataset", "on_outputs"])
def test_a_released_table_and_own_predictions_are_no_grants(hook: str) -> None:
    chain = chain_of(Everywhere())
    phase = Phase.DISCLOSE if hook == "on_dataset" else Phase.PREDICT
    chain.fold(hook, np.ones((1, 3)), Exchange("run", phase, 1, 4), positions(0))
    assert chain.on_grants_only() == []


@pytest.mark.parametrize("empty", [(0, 3), (5, 0)], ids=["no rows", "no columns"])
def test_a_defence_of_nothing_has_not_acted(tmp_path: Path, empty: tuple[int, int]) -> None:
    """An active party of a split network sends the coordinator rows without numbers: noise on them protects
    nothing.
    """
    gate = open_gate(tmp_path, Noise())
    rows = np.arange(empty[0], dtype=np.int32)
    gate.release(Point.EMBEDDING, train_step(0), rows, {"embedding": np.zeros(empty)})
    assert _idle(gate) == "Noise"
    gate.release(Point.EMBEDDING, train_step(1), positions(7), {"embedding": np.zeros((1, 1))})
    gate.check_fired()
