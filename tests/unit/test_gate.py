"""What leaves a party: defended once, sealed, kept; the same row never twice with fresh noise."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laboratory import NOTHING, same
from scipy.special import log_softmax
from scipy.stats import chi2

from defenses.gaussian_scores import GaussianScores
from defenses.withhold_parameters import WithholdParameters
from vfl.defense import Context, Defense
from vfl.errors import DefenseError, PluginError, ProtocolError, StateError, StorageError
from vfl.gate import DefenseChain, ReleaseGate, check_fired
from vfl.rowlog import RowLog
from vfl.types import Array, Exchange, Owner, Phase, Point

SCORES = np.log(np.random.default_rng(0).dirichlet(np.ones(3), 40))


class Noise(Defense):
    """Adds standard normal noise to everything it meets."""

    def on_embedding(self, h: Array, ctx: Context) -> Array:
        return h + ctx.stream().normal(size=h.shape)

    def on_gradient(self, g: Array, ctx: Context) -> Array:
        return g + ctx.stream().normal(size=g.shape)

    def on_parameters(self, w: Mapping[str, Array], ctx: Context) -> Mapping[str, Array]:
        return {name: a + ctx.stream(name).normal(size=a.shape) for name, a in w.items()}


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


def _chain(*defenses: Defense, secret: bytes = b"secret") -> DefenseChain:
    return DefenseChain(lambda: Owner("party"), defenses, secret)


_OPEN: list[ReleaseGate] = []


@pytest.fixture(autouse=True)
def _close_gates() -> Iterator[None]:
    yield
    while _OPEN:
        _OPEN.pop().close()


def _gate(folder: Path, *defenses: Defense, secret: bytes = b"secret") -> ReleaseGate:
    _OPEN.append(ReleaseGate("party", _chain(*defenses, secret=secret), folder))
    return _OPEN[-1]


def _train(step: int, run: str = "run") -> Exchange:
    return Exchange(run, Phase.TRAIN, 0, step)


def _predict(step: int, version: int = 1) -> Exchange:
    return Exchange("run", Phase.PREDICT, version, step)


def _rows(*rows: int) -> Array:
    return np.array(rows, np.int32)


def _value(gate: ReleaseGate, step: int, *rows: int, version: int = 1) -> Array:
    """The released scores of ``rows``, asked in prediction ``step``."""
    released = gate.release_rows(Point.SCORES, _predict(step, version), _rows(*rows), lambda r: SCORES[r])
    assert released.rows.tolist() == list(rows)
    return released.tensor("scores")


# --- TRAIN


def test_a_repeated_training_exchange_is_answered_and_not_drawn_again(tmp_path: Path) -> None:
    gate = _gate(tmp_path, Noise())
    h = np.zeros((2, 3))
    assert gate.answered(Point.EMBEDDING, _train(4)) is None
    first = gate.release(Point.EMBEDDING, _train(4), _rows(1, 2), {"embedding": h})
    assert gate.answered(Point.EMBEDDING, _train(4)) is first
    assert np.abs(first.tensor("embedding")).min() > 0
    assert gate.answered(Point.GRADIENT, _train(4)) is None
    assert gate.answered(Point.EMBEDDING, _train(5)) is None
    with pytest.raises(StateError, match=r"^step 3 of run 'run' is over, 4 was the last: ask for the next$"):
        gate.answered(Point.EMBEDDING, _train(3))
    with pytest.raises(StateError, match="step 4 of run 'other' is over"):
        gate.answered(Point.EMBEDDING, _train(4, "other"))


def test_each_training_exchange_has_its_own_noise(tmp_path: Path) -> None:
    gate = _gate(tmp_path, Noise())
    zeros = {"embedding": np.zeros((2, 3))}
    a, b = (gate.release(Point.EMBEDDING, _train(s), _rows(1, 2), zeros).tensor("embedding") for s in (0, 1))
    assert not np.isclose(a, b).any()


def test_a_rebuilt_gate_redraws_the_same_noise(tmp_path: Path) -> None:
    zeros = {"gradient": np.zeros((2, 3))}
    a, b, other = (
        _gate(tmp_path / str(i), Noise(), secret=secret).release(
            Point.GRADIENT, _train(0), _rows(1, 2), zeros
        )
        for i, secret in enumerate((b"secret", b"secret", b"another"))
    )
    assert same(a, b)
    assert not np.isclose(a.tensor("gradient"), other.tensor("gradient")).any()


def test_a_gate_takes_up_the_last_training_releases_of_another(tmp_path: Path) -> None:
    gate, heir = _gate(tmp_path / "a"), _gate(tmp_path / "b")
    last = gate.release(Point.GRADIENT, _train(7), _rows(1), {"gradient": np.ones((1, 3))})
    heir.load({**gate.state(), "theta": np.zeros(3)}, "run")
    answer = heir.answered(Point.GRADIENT, _train(7))
    assert answer is not None
    assert same(answer, last)


# --- PREDICT


def test_a_row_is_released_once_however_it_is_asked_again(tmp_path: Path) -> None:
    gate = _gate(tmp_path, GaussianScores())
    first = _value(gate, 0, 3, 1, 2)
    assert np.abs(first - SCORES[[3, 1, 2]]).min() > 0
    np.testing.assert_array_equal(_value(gate, 0, 3, 1, 2), first)  # the same exchange: a retry
    np.testing.assert_array_equal(_value(gate, 1, 3, 1, 2), first)  # a new one
    np.testing.assert_array_equal(_value(gate, 2, 2, 3, 1), first[[2, 0, 1]])  # permuted
    overlapping = _value(gate, 3, 2, 9, 3)
    np.testing.assert_array_equal(overlapping[[0, 2]], first[[2, 0]])
    np.testing.assert_array_equal(_value(gate, 4, 9), overlapping[1:2])
    assert gate.released_rows(Point.SCORES, 1).tolist() == [3, 1, 2, 9]


def test_only_rows_not_yet_released_are_computed(tmp_path: Path) -> None:
    gate, computed = _gate(tmp_path), []

    def compute(rows: Array) -> Array:
        computed.append(rows.tolist())
        return SCORES[rows]

    gate.release_rows(Point.SCORES, _predict(0), _rows(5, 4), compute)
    gate.release_rows(Point.SCORES, _predict(1), _rows(6, 4, 2, 5), compute)
    gate.release_rows(Point.SCORES, _predict(2), _rows(4, 2), compute)
    assert computed == [[5, 4], [6, 2]]


def test_another_model_version_is_released_anew(tmp_path: Path) -> None:
    gate = _gate(tmp_path, GaussianScores())
    assert not np.isclose(_value(gate, 0, 3, 1), _value(gate, 0, 3, 1, version=2)).any()
    assert gate.released_rows(Point.SCORES, 2).tolist() == [3, 1]
    assert gate.released_rows(Point.SCORES, 3).tolist() == []
    assert gate.released_rows(Point.EMBEDDING, 1).tolist() == []


def test_a_row_whose_record_the_disk_refused_was_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = _gate(tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("vfl.journal._write_blocks", full)
    for step in (0, 1):  # not answered from the log either
        with pytest.raises(StorageError, match="No space left on device"):
            _value(gate, step, 3)
    assert len(gate.released_rows(Point.SCORES, 1)) == 0


def test_a_row_named_twice_is_refused_and_leaves_no_trace(tmp_path: Path) -> None:
    gate = _gate(tmp_path)
    with pytest.raises(
        ProtocolError, match=r"^rows of predict step 0 are named twice: ask for each row once$"
    ):
        _value(gate, 0, 3, 1, 3)
    assert len(gate.released_rows(Point.SCORES, 1)) == 0
    _value(gate, 0, 3, 1)
    with pytest.raises(ProtocolError, match="rows of predict step 1 are named twice"):
        _value(gate, 1, 3, 3)  # also when all of them were released before


def test_an_exchange_is_not_used_for_other_rows(tmp_path: Path) -> None:
    gate = _gate(tmp_path, GaussianScores())
    _value(gate, 0, 3, 1)
    for rows in ((4, 5), (3, 1, 4)):
        with pytest.raises(
            StateError,
            match=r"^prediction step 0 was used before with other rows: number requests upwards$",
        ):
            _value(gate, 0, *rows)
    assert gate.released_rows(Point.SCORES, 1).tolist() == [3, 1]


def test_a_failing_computation_releases_nothing(tmp_path: Path) -> None:
    gate = _gate(tmp_path)

    def fail(rows: Array) -> Array:
        raise ProtocolError("no logits")

    with pytest.raises(ProtocolError, match="no logits"):
        gate.release_rows(Point.SCORES, _predict(0), _rows(1), fail)
    np.testing.assert_array_equal(_value(gate, 0, 1, 2), SCORES[[1, 2]])


def test_the_release_log_survives_a_restart(tmp_path: Path) -> None:
    gate = _gate(tmp_path, GaussianScores())
    first, second = _value(gate, 0, 3, 1), _value(gate, 1, 7)
    gate.close()
    again = _gate(tmp_path, GaussianScores(), secret=b"fresh noise would differ")
    assert again.released_rows(Point.SCORES, 1).tolist() == [3, 1, 7]
    np.testing.assert_array_equal(_value(again, 2, 7, 1, 3), np.concatenate([second, first[::-1]]))
    with pytest.raises(StateError, match="prediction step 1 was used before"):
        _value(again, 1, 8)
    again.close()


def test_the_same_noise_is_drawn_where_the_log_was_lost(tmp_path: Path) -> None:
    a, b = (_value(_gate(tmp_path / str(i), GaussianScores()), 0, 3, 1) for i in range(2))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("claimed", "accepted"), [(1.0, True), (2 / 3, False), (1.5, False)], ids=["σ", "⅔σ", "1½σ"]
)
def test_released_scores_carry_noise_of_the_configured_scale(
    tmp_path: Path, claimed: float, accepted: bool
) -> None:
    sigma, k, n = 0.7, 4, 2000
    exact = np.log(np.random.default_rng(1).dirichlet(np.ones(k), n))
    gate = _gate(tmp_path, GaussianScores(sigma=sigma))
    rows = np.arange(n, dtype=np.int32)
    released = gate.release_rows(Point.SCORES, _predict(0), rows, lambda r: exact[r]).tensor("scores")
    gate.close()
    ratios = (released - released[:, -1:])[:, :-1] - (exact - exact[:, -1:])[:, :-1]
    # The differences to the last class have covariance σ²(I + 11ᵀ): its inverse whitens them.
    white = np.einsum("ni,ij,nj->", ratios, np.linalg.inv(np.eye(k - 1) + 1), ratios)
    low, high = chi2.ppf([1e-6, 1 - 1e-6], n * (k - 1)) * (claimed * sigma) ** 2
    assert (low < white < high) == accepted


# --- DISCLOSE


def test_a_disclosure_is_made_once_whoever_receives_it(tmp_path: Path) -> None:
    gate = _gate(tmp_path, Noise())
    exchange = Exchange("run", Phase.DISCLOSE, 1, 3)
    weights = {"weight": np.zeros((2, 2)), "bias": np.zeros(2)}
    first = gate.release(Point.PARAMETERS, exchange, NOTHING, weights)
    assert gate.release(Point.PARAMETERS, exchange, NOTHING, {"weight": np.ones((2, 2))}) is first
    next_version = gate.release(Point.PARAMETERS, Exchange("run", Phase.DISCLOSE, 2, 3), NOTHING, weights)
    assert not np.isclose(first.tensor("weight"), next_version.tensor("weight")).any()


def test_withheld_parameters_stay_withheld_and_end_the_fold(tmp_path: Path) -> None:
    gate = _gate(tmp_path, WithholdParameters(), Noise())
    exchange = Exchange("run", Phase.DISCLOSE, 1, 3)
    assert gate.release(Point.PARAMETERS, exchange, NOTHING, {"weight": np.ones((2, 2))}).tensors is None
    assert gate.unfired() == ["test_gate"]


def test_points_without_a_hook_leave_as_they_are(tmp_path: Path) -> None:
    exchange = Exchange("run", Phase.DISCLOSE, 1, 6)
    moments = {"mean": np.arange(2.0), "covariance": np.eye(2)}
    released = _gate(tmp_path, Noise()).release(Point.MOMENTS, exchange, NOTHING, moments)
    assert {n: a.tolist() for n, a in (released.tensors or {}).items()} == {
        "mean": [0.0, 1.0],
        "covariance": [[1.0, 0.0], [0.0, 1.0]],
    }


def test_predictions_cannot_slip_through_the_gate_of_the_other_phases(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"^prediction rows are released with release_rows$"):
        _gate(tmp_path).release(Point.SCORES, _predict(0), _rows(1), {"scores": SCORES[:1]})


# --- defences


def test_defences_are_folded_in_configured_order(tmp_path: Path) -> None:
    orders = [
        (Affine(factor=3), Affine(shift=1)),
        (Affine(shift=1), Affine(factor=3)),
    ]
    for i, (defenses, expected) in enumerate(zip(orders, (7.0, 9.0), strict=True)):
        gate = _gate(tmp_path / str(i), *defenses)
        released = gate.release(Point.EMBEDDING, _train(0), _rows(0), {"embedding": np.full((1, 1), 2.0)})
        assert released.tensor("embedding").tolist() == [[expected]]


def test_two_defences_of_one_kind_draw_different_noise() -> None:
    once, twice = _chain(Noise()), _chain(Noise(), Noise())
    a = once.fold("on_embedding", np.zeros((3, 3)), _train(0), _rows(0, 1, 2))
    b = twice.fold("on_embedding", np.zeros((3, 3)), _train(0), _rows(0, 1, 2))
    assert not np.isclose(2 * a, b).any()


def test_a_defence_is_fitted_once() -> None:
    chain = _chain(Fitted())
    a, b = (chain.fold("on_embedding", np.zeros((1, 1)), _train(s), _rows(0)) for s in (0, 1))
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
    gate = _gate(tmp_path, Broken(answer=answer))
    with pytest.raises(PluginError, match=sentence):
        gate.release(Point.EMBEDDING, _train(0), _rows(0, 1), {"embedding": np.ones((2, 3))})
    assert gate.answered(Point.EMBEDDING, _train(0)) is None


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
    gate = _gate(tmp_path, BrokenParameters(shape=shape))
    with pytest.raises(PluginError, match=sentence):
        gate.release(Point.PARAMETERS, exchange, NOTHING, {"weight": np.ones((2, 2))})


def test_minus_infinity_may_leave(tmp_path: Path) -> None:
    scores = np.array([[0.0, -np.inf, -np.inf]])
    gate = _gate(tmp_path, GaussianScores())
    released = gate.release_rows(Point.SCORES, _predict(0), _rows(0), lambda r: scores)
    np.testing.assert_array_equal(released.tensor("scores"), scores)


def test_a_defence_that_never_acted_is_named(tmp_path: Path) -> None:
    gate = _gate(tmp_path, Noise(), GaussianScores())
    assert gate.unfired() == ["test_gate", "gaussian_scores"]
    gate.release(Point.EMBEDDING, _train(0), _rows(0), {"embedding": np.ones((1, 3))})
    assert gate.unfired() == ["gaussian_scores"]
    with pytest.raises(
        DefenseError,
        match=r"^defence 'gaussian_scores' of 'party' never acted in this run: remove it, or configure what it acts on$",
    ):
        check_fired(gate, "party")
    _value(gate, 0, 1)
    check_fired(gate, "party")


# --- seals


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">f8").reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12.0).reshape(2, 6)[:, ::2],
    ],
    ids=["big-endian", "column-major", "strided"],
)
def test_sealed_arrays_are_read_only_contiguous_and_little_endian(tmp_path: Path, array: Array) -> None:
    released = _gate(tmp_path).release(Point.EMBEDDING, _train(0), _rows(4, 5), {"embedding": array})
    sealed = released.tensor("embedding")
    np.testing.assert_array_equal(sealed, array)
    assert sealed.dtype.str == "<f8"
    assert sealed.flags.c_contiguous
    for kept in (sealed, released.rows):
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = 0


def test_the_rows_released_so_far_cannot_be_changed_from_outside(tmp_path: Path) -> None:
    gate = _gate(tmp_path)
    released = gate.release_rows(Point.SCORES, _predict(0), _rows(2, 1), lambda r: SCORES[r])
    with pytest.raises(ValueError, match="read-only"):
        gate.released_rows(Point.SCORES, 1)[0] = 9
    with pytest.raises(ValueError, match="read-only"):
        released.tensor("scores")[0] = 9


# --- the log of rows against a dictionary


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=40, unique=True), max_size=12), st.data())
def test_a_row_log_is_a_dictionary(batches: list[list[int]], data: st.DataObject) -> None:
    log = RowLog()
    twin: dict[int, float] = {}
    for step, batch in enumerate(batches):
        fresh = [r for r in batch if r not in twin]
        assert log.has(_rows(*batch)).tolist() == [r in twin for r in batch]
        if fresh:
            values = np.array([[r + step / 100, -r] for r in fresh])
            log.add(_rows(*fresh), values, _predict(step))
            twin |= {r: r + step / 100 for r in fresh}
            assert _predict(step) in log.exchanges
    assert log.order().tolist() == list(twin)
    asked = data.draw(st.lists(st.sampled_from(sorted(twin)), max_size=30)) if twin else []
    if asked:
        np.testing.assert_array_equal(log.values(_rows(*asked)), [[twin[r], -r] for r in asked])


def test_scores_without_a_defence_are_exact(tmp_path: Path) -> None:
    logits = np.random.default_rng(2).normal(size=(3, 4))
    gate = _gate(tmp_path)
    released = gate.release_rows(
        Point.SCORES, _predict(0), _rows(0, 1, 2), lambda r: log_softmax(logits, axis=1)
    )
    np.testing.assert_array_equal(released.tensor("scores"), log_softmax(logits, axis=1))
