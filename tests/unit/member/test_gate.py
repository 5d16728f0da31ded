"""What leaves a party: defended once, sealed, kept; the same row never twice with fresh noise."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest
from gates import SCORES, Noise, open_gate, positions, predict_step, scores_of, train_step
from laboratory import NOTHING, same
from scipy.special import log_softmax
from scipy.stats import chi2

from vflens.defenses.gaussian_scores import GaussianScores
from vflens.errors import ProtocolError, StateError, StorageError
from vflens.types import Array, Exchange, Phase, Point

# --- TRAIN


def test_a_repeated_training_exchange_is_answered_and_not_drawn_again(tmp_path: Path) -> None:
    gate = open_gate(tmp_path, Noise())
    h = np.zeros((2, 3))
    assert gate.answered(Point.EMBEDDING, train_step(4)) is None
    first = gate.release(Point.EMBEDDING, train_step(4), positions(1, 2), {"embedding": h})
    assert gate.answered(Point.EMBEDDING, train_step(4)) is first
    assert np.abs(first.tensor("embedding")).min() > 0
    assert gate.answered(Point.GRADIENT, train_step(4)) is None
    assert gate.answered(Point.EMBEDDING, train_step(5)) is None
    with pytest.raises(StateError, match=r"^step 3 of run 'run' is over, 4 was the last: ask for the next$"):
        gate.answered(Point.EMBEDDING, train_step(3))
    with pytest.raises(StateError, match="step 4 of run 'other' is over"):
        gate.answered(Point.EMBEDDING, train_step(4, "other"))


def test_each_training_exchange_has_its_own_noise(tmp_path: Path) -> None:
    gate = open_gate(tmp_path, Noise())
    zeros = {"embedding": np.zeros((2, 3))}
    a, b = (
        gate.release(Point.EMBEDDING, exchange, positions(1, 2), zeros).tensor("embedding")
        for exchange in (train_step(0), train_step(1)._replace(round=1))
    )
    assert not np.isclose(a, b).any()


def test_a_rebuilt_gate_redraws_the_same_noise(tmp_path: Path) -> None:
    zeros = {"gradient": np.zeros((2, 3))}
    a, b, other = (
        open_gate(tmp_path / str(i), Noise(), secret=secret).release(
            Point.GRADIENT, train_step(0), positions(1, 2), zeros
        )
        for i, secret in enumerate((b"secret", b"secret", b"another"))
    )
    assert same(a, b)
    assert not np.isclose(a.tensor("gradient"), other.tensor("gradient")).any()


def test_a_gate_takes_up_the_last_training_releases_of_another(tmp_path: Path) -> None:
    gate, heir = open_gate(tmp_path / "a"), open_gate(tmp_path / "b")
    last = gate.release(Point.GRADIENT, train_step(7), positions(1), {"gradient": np.ones((1, 3))})
    heir.load({**gate.state(), "theta": np.zeros(3)}, "run")
    answer = heir.answered(Point.GRADIENT, train_step(7))
    assert answer is not None
    assert same(answer, last)


def test_a_budget_refuses_before_rows_are_taken_or_values_computed(tmp_path: Path) -> None:
    gate, asked = open_gate(tmp_path), list[Exchange]()

    def cover(exchange: Exchange) -> None:
        asked.append(exchange)
        raise StateError("spent")

    def compute(rows: Array) -> Array:
        raise AssertionError("computed")

    gate.limit(cover)
    with pytest.raises(StateError, match=r"^spent$"):
        gate.take(train_step(0), positions(1, 2))
    with pytest.raises(StateError, match=r"^spent$"):
        gate.release_rows(Point.SCORES, predict_step(0), positions(1, 2), compute)
    assert asked == [train_step(0), predict_step(0)]
    assert (gate.rows_of(0), gate.epochs, list(gate.logged())) == (None, 0, [])


# --- PREDICT


def test_a_row_is_released_once_however_it_is_asked_again(tmp_path: Path) -> None:
    gate = open_gate(tmp_path, GaussianScores())
    first = scores_of(gate, 0, 3, 1, 2)
    assert np.abs(first - SCORES[[3, 1, 2]]).min() > 0
    np.testing.assert_array_equal(scores_of(gate, 0, 3, 1, 2), first)  # the same exchange: a retry
    np.testing.assert_array_equal(scores_of(gate, 1, 3, 1, 2), first)  # a new one
    np.testing.assert_array_equal(scores_of(gate, 2, 2, 3, 1), first[[2, 0, 1]])  # permuted
    overlapping = scores_of(gate, 3, 2, 9, 3)
    np.testing.assert_array_equal(overlapping[[0, 2]], first[[2, 0]])
    np.testing.assert_array_equal(scores_of(gate, 4, 9), overlapping[1:2])
    assert gate.released_rows(Point.SCORES, 1).tolist() == [3, 1, 2, 9]


def test_only_rows_not_yet_released_are_computed(tmp_path: Path) -> None:
    gate, computed = open_gate(tmp_path), []

    def compute(rows: Array) -> Array:
        computed.append(rows.tolist())
        return SCORES[rows]

    gate.release_rows(Point.SCORES, predict_step(0), positions(5, 4), compute)
    gate.release_rows(Point.SCORES, predict_step(1), positions(6, 4, 2, 5), compute)
    gate.release_rows(Point.SCORES, predict_step(2), positions(4, 2), compute)
    assert computed == [[5, 4], [6, 2]]


def test_another_model_version_is_released_anew(tmp_path: Path) -> None:
    gate = open_gate(tmp_path, GaussianScores())
    assert not np.isclose(scores_of(gate, 0, 3, 1), scores_of(gate, 0, 3, 1, version=2)).any()
    assert gate.released_rows(Point.SCORES, 2).tolist() == [3, 1]
    assert gate.released_rows(Point.SCORES, 3).tolist() == []
    assert gate.released_rows(Point.EMBEDDING, 1).tolist() == []


def test_a_row_whose_record_the_disk_refused_was_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = open_gate(tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("vflens.storage.journal._write_blocks", full)
    for step in (0, 1):  # not answered from the log either
        with pytest.raises(StorageError, match="No space left on device"):
            scores_of(gate, step, 3)
    assert len(gate.released_rows(Point.SCORES, 1)) == 0


def test_a_row_named_twice_is_refused_and_leaves_no_trace(tmp_path: Path) -> None:
    gate = open_gate(tmp_path)
    with pytest.raises(
        ProtocolError, match=r"^rows of predict step 0 are named twice: ask for each row once$"
    ):
        scores_of(gate, 0, 3, 1, 3)
    assert len(gate.released_rows(Point.SCORES, 1)) == 0
    scores_of(gate, 0, 3, 1)
    with pytest.raises(ProtocolError, match="rows of predict step 1 are named twice"):
        scores_of(gate, 1, 3, 3)  # also when all of them were released before


def test_an_exchange_is_not_used_for_other_rows(tmp_path: Path) -> None:
    gate = open_gate(tmp_path, GaussianScores())
    scores_of(gate, 0, 3, 1)
    for rows in ((4, 5), (3, 1, 4)):
        with pytest.raises(
            StateError,
            match=r"^prediction step 0 was used before with other rows: number requests upwards$",
        ):
            scores_of(gate, 0, *rows)
    assert gate.released_rows(Point.SCORES, 1).tolist() == [3, 1]


def test_a_failing_computation_releases_nothing(tmp_path: Path) -> None:
    gate = open_gate(tmp_path)

    def fail(rows: Array) -> Array:
        raise ProtocolError("no logits")

    with pytest.raises(ProtocolError, match="no logits"):
        gate.release_rows(Point.SCORES, predict_step(0), positions(1), fail)
    np.testing.assert_array_equal(scores_of(gate, 0, 1, 2), SCORES[[1, 2]])


def test_the_release_log_survives_a_restart(tmp_path: Path) -> None:
    gate = open_gate(tmp_path, GaussianScores())
    first, second = scores_of(gate, 0, 3, 1), scores_of(gate, 1, 7)
    gate.close()
    again = open_gate(tmp_path, GaussianScores(), secret=b"fresh noise would differ")
    assert again.released_rows(Point.SCORES, 1).tolist() == [3, 1, 7]
    np.testing.assert_array_equal(scores_of(again, 2, 7, 1, 3), np.concatenate([second, first[::-1]]))
    with pytest.raises(StateError, match="prediction step 1 was used before"):
        scores_of(again, 1, 8)
    again.close()


def test_the_same_noise_is_drawn_where_the_log_was_lost(tmp_path: Path) -> None:
    a, b = (scores_of(open_gate(tmp_path / str(i), GaussianScores()), 0, 3, 1) for i in range(2))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("claimed", "accepted"), [(1.0, True), (2 / 3, False), (1.5, False)], ids=["σ", "⅔σ", "1½σ"]
)
def test_released_scores_carry_noise_of_the_configured_scale(
    tmp_path: Path, claimed: float, accepted: bool
) -> None:
    sigma, k, n = 0.7, 4, 2000
    exact = np.log(np.random.default_rng(1).dirichlet(np.ones(k), n))
    gate = open_gate(tmp_path, GaussianScores(sigma=sigma))
    rows = np.arange(n, dtype=np.int32)
    released = gate.release_rows(Point.SCORES, predict_step(0), rows, lambda r: exact[r]).tensor("scores")
    gate.close()
    ratios = (released - released[:, -1:])[:, :-1] - (exact - exact[:, -1:])[:, :-1]
    # The differences to the last class have covariance σ²(I + 11ᵀ): its inverse whitens them.
    white = np.einsum("ni,ij,nj->", ratios, np.linalg.inv(np.eye(k - 1) + 1), ratios)
    low, high = chi2.ppf([1e-6, 1 - 1e-6], n * (k - 1)) * (claimed * sigma) ** 2
    assert (low < white < high) == accepted


# --- DISCLOSE


def test_a_disclosure_is_made_once_whoever_receives_it(tmp_path: Path) -> None:
    gate = open_gate(tmp_path, Noise())
    exchange = Exchange("run", Phase.DISCLOSE, 1, 3)
    weights = {"weight": np.zeros((2, 2)), "bias": np.zeros(2)}
    first = gate.release(Point.PARAMETERS, exchange, NOTHING, weights)
    assert gate.release(Point.PARAMETERS, exchange, NOTHING, {"weight": np.ones((2, 2))}) is first
    next_version = gate.release(Point.PARAMETERS, Exchange("run", Phase.DISCLOSE, 2, 3), NOTHING, weights)
    assert not np.isclose(first.tensor("weight"), next_version.tensor("weight")).any()


def test_points_without_a_hook_leave_as_they_are(tmp_path: Path) -> None:
    exchange = Exchange("run", Phase.DISCLOSE, 1, 6)
    moments = {"mean": np.arange(2.0), "covariance": np.eye(2)}
    released = open_gate(tmp_path, Noise()).release(Point.MOMENTS, exchange, NOTHING, moments)
    assert {n: a.tolist() for n, a in (released.tensors or {}).items()} == {
        "mean": [0.0, 1.0],
        "covariance": [[1.0, 0.0], [0.0, 1.0]],
    }


def test_predictions_cannot_slip_through_the_gate_of_the_other_phases(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"^prediction rows are released with release_rows$"):
        open_gate(tmp_path).release(Point.SCORES, predict_step(0), positions(1), {"scores": SCORES[:1]})


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
    released = open_gate(tmp_path).release(
        Point.EMBEDDING, train_step(0), positions(4, 5), {"embedding": array}
    )
    sealed = released.tensor("embedding")
    np.testing.assert_array_equal(sealed, array)
    assert sealed.dtype.str == "<f8"
    assert sealed.flags.c_contiguous
    for kept in (sealed, released.rows):
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = 0


def test_the_rows_released_so_far_cannot_be_changed_from_outside(tmp_path: Path) -> None:
    gate = open_gate(tmp_path)
    released = gate.release_rows(Point.SCORES, predict_step(0), positions(2, 1), lambda r: SCORES[r])
    with pytest.raises(ValueError, match="read-only"):
        gate.released_rows(Point.SCORES, 1)[0] = 9
    with pytest.raises(ValueError, match="read-only"):
        released.tensor("scores")[0] = 9


def test_scores_without_a_defence_are_exact(tmp_path: Path) -> None:
    logits = np.random.default_rng(2).normal(size=(3, 4))
    gate = open_gate(tmp_path)
    released = gate.release_rows(
        Point.SCORES, predict_step(0), positions(0, 1, 2), lambda r: log_softmax(logits, axis=1)
    )
    np.testing.assert_array_equal(released.tensor("scores"), log_softmax(logits, axis=1))
