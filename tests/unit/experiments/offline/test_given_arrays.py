"""Attacks on arrays of a federation that VFLens did not run, and their scores."""

from __future__ import annotations

import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import Refused, Run, refused, strict, vflens
from scipy import stats
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from thinned import first

import vflens as vl
from vflens.experiments.offline.given_arrays import attack_arrays, score_arrays
from vflens.types import Array

_FIXTURES = (refused, vflens)  # used by name
RNG = np.random.default_rng(5)
BOUNDS = np.array([[-3.0, 5.0], [20.0, 21.0]])
X = RNG.uniform(BOUNDS[:, 0], BOUNDS[:, 1], (40, 2))  # the unknown columns, in their own units
OWN, W, W_OWN = RNG.normal(size=(40, 3)), RNG.normal(size=(4, 2)), RNG.normal(size=(4, 3))
BIAS = RNG.normal(size=4)
SCORES: Array = softmax(X @ W.T + OWN @ W_OWN.T + BIAS, axis=1)
SEEN: dict[str, Any] = {
    **{"W": W, "bias": BIAS, "scores": SCORES, "own": OWN, "W_own": W_OWN, "bounds": BOUNDS},
    **{"mean": X.mean(axis=0), "covariance": np.cov(X.T)},
}


def saved(file: Path, **changes: Any) -> Path:
    """The arrays of :data:`SEEN` with ``changes``; None leaves one out."""
    arrays = {key: value for key, value in {**SEEN, **changes}.items() if value is not None}
    np.savez(file, **arrays)
    return file


def values(file: Path) -> Array:
    with np.load(file) as found:
        array: Array = found["values"]
        return array


@pytest.mark.parametrize("attack", ["ls", "half_star", "cls", "rcc2", "lmmse"])
def test_enough_equations_give_the_columns_in_any_units(tmp_path: Path, attack: str) -> None:
    """Three independent equations, two unknowns: RVG §III. LMMSE weighs them against its moments."""
    out = tmp_path / "estimate.npz"
    facts = attack_arrays(saved(tmp_path / "seen.npz"), attack, out)
    assert (facts["rows"], facts["scored_set"]) == (40, "predict")
    scaled = (X - BOUNDS[:, 0]) / (BOUNDS[:, 1] - BOUNDS[:, 0])
    np.testing.assert_allclose(values(out), scaled, atol=1e-5)
    assert out.stat().st_mode & 0o777 == 0o600


def test_an_error_is_that_of_numpy_beside_the_blind_one(tmp_path: Path) -> None:
    out, truth = tmp_path / "estimate.npz", tmp_path / "truth.npz"
    seen = saved(
        tmp_path / "seen.npz",
        W=W[:2],
        bias=BIAS[:2],
        W_own=W_OWN[:2],
        scores=softmax(X @ W[:2].T + OWN @ W_OWN[:2].T + BIAS[:2], axis=1),
    )
    attack_arrays(seen, "half_star", out)
    np.savez(truth, x=X)
    scaled = (X - BOUNDS[:, 0]) / (BOUNDS[:, 1] - BOUNDS[:, 0])
    facts = score_arrays(out, truth)
    # half*: the nearest point to one half on a line, by an independent route
    A = np.diff(W[:2], axis=0) * (BOUNDS[:, 1] - BOUNDS[:, 0])
    direction = A[0] / np.linalg.norm(A)
    nearest = 0.5 + ((scaled - 0.5) @ direction)[:, None] * direction
    assert facts["mse"] == pytest.approx(((nearest - scaled) ** 2).mean())
    per_row = ((nearest - scaled) ** 2).mean(axis=1)
    interval = stats.norm.interval(0.95, per_row.mean(), stats.sem(per_row))
    assert facts["half_width"] == pytest.approx(np.ptp(interval) / 2, rel=1e-4)  # 1.96 stands for 1.95996
    assert facts["blind_mse"] == pytest.approx(scaled.var(axis=0).mean())
    assert facts["blind_guess"] == "column_means"
    assert facts["columns"]["1"]["mse"] == pytest.approx(((nearest - scaled) ** 2)[:, 1].mean())


def test_a_model_of_scikit_learn_with_two_classes_is_taken_as_it_is(tmp_path: Path) -> None:
    x = np.hstack([X[:, :1], OWN])
    model = LogisticRegression().fit(x, x.sum(axis=1) > 0)
    coefficients, p = model.coef_, model.predict_proba(x)
    common = {"W": coefficients[:, :1], "W_own": coefficients[:, 1:], "bias": model.intercept_}
    common |= {"bounds": BOUNDS[:1], "mean": None, "covariance": None}
    for scores in (p, p[:, 1], p[:, 1:]):
        attack_arrays(saved(tmp_path / "seen.npz", scores=scores, **common), "ls", tmp_path / "out.npz")
        found = values(tmp_path / "out.npz")[:, 0] * 8 - 3
        np.testing.assert_allclose(found, X[:, 0], atol=1e-6)


def test_a_score_of_zero_is_a_status_of_its_row(tmp_path: Path) -> None:
    scores = SCORES.copy()
    scores[3] = [1, 0, 0, 0]
    facts = attack_arrays(saved(tmp_path / "seen.npz", scores=scores), "half_star", tmp_path / "out.npz")
    assert facts["status"] == {"ok": 39, "saturated": 1}
    np.testing.assert_array_equal(values(tmp_path / "out.npz")[3], [0.5, 0.5])


def test_attacks_without_equations_run_too(tmp_path: Path) -> None:
    attack_arrays(saved(tmp_path / "seen.npz"), "half", tmp_path / "out.npz")
    assert set(values(tmp_path / "out.npz").flat) == {0.5}


def test_from_the_command_line(tmp_path: Path, vflens: Run) -> None:
    seen, out, truth = saved(tmp_path / "seen.npz"), tmp_path / "estimate.npz", tmp_path / "truth.npz"
    np.savez(truth, x=X)
    stated = vflens("attack", "--arrays", seen, "--attack", "rcc2", "--out", out)
    assert stated.code == 0, stated.err
    assert stated.out.splitlines()[-1] == f"let the target score it: vflens score {out} --truth …"
    scored = vflens("score", out, "--truth", truth)
    assert re.match(
        r"rcc2 on 40 rows: MSE 0 ± 0; best blind guess \(column_means\) \.\d{3}$",
        scored.out,
    )
    assert strict(vflens("score", out, "--truth", truth, "--json").out)["rows"] == 40


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"W": None}, "lacks 'W': give at least W and scores"),
        ({"scores": None}, "lacks 'scores'"),
        ({"weights": W}, "holds 'weights': the arrays are W, scores, bias, own"),
        ({"own": None}, "has 'W_own' without 'own': give both"),
        ({"mean": None}, "has 'covariance' without 'mean'"),
        ({"own": OWN[:3]}, "'own' of .* has shape .*3, 3.: give .N = 40, p.*"),
        ({"bias": BIAS[:2]}, r"'bias' of .* has shape \(2,\): give \(k = 4\)"),
        ({"W": W[:, :, None]}, "'W' of .* has shape .4, 2, 1."),
        ({"W": W[:1], "scores": np.float64(1)}, "'scores' of .* has shape"),
        ({"scores": np.log(SCORES)}, "no probabilities that sum to 1 by row: give softmax"),
        ({"scores": SCORES / 2}, "no probabilities"),
        ({"W": np.full((4, 2), np.nan)}, "'W' of .* holds something else than finite numbers"),
        ({"W": np.array([["a", "b"]])}, "'W' of .* holds something else than finite numbers"),
        ({"W": W * 1e60}, "'W' of .* holds numbers beyond 1e.50: give other units"),
        ({"bounds": BOUNDS[:, ::-1]}, "without low < high"),
        ({"scores": SCORES[:0], "own": OWN[:0]}, "0 rows"),
        ({"W": np.array([{}, {}], object)}, "holds Python objects, not numbers"),
    ],
)
def test_wrong_arrays_are_refused(
    tmp_path: Path, refused: Refused, changes: dict[str, Any], words: str
) -> None:
    seen = saved(tmp_path / "seen.npz", **changes)
    code = 12 if "objects" in words else 3
    sentence = refused(code, "attack", "--arrays", seen, "--attack", "ls", "--out", tmp_path / "out.npz")
    assert re.search(words, sentence), sentence


class Bomb:
    def __reduce__(self) -> Any:
        return pytest.fail, ("the pickle was opened",)


@pytest.mark.parametrize(
    ("name", "line"), [("m.pkl", "joblib.load"), ("seen.npz", "joblib.load"), ("m.pt", "torch")]
)
def test_a_pickle_is_refused_with_the_line_that_converts_it(
    tmp_path: Path, refused: Refused, name: str, line: str
) -> None:
    file = tmp_path / name
    if name == "m.pt":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("m/data.pkl", pickle.dumps(Bomb()))
    else:
        file.write_bytes(pickle.dumps(Bomb()))
    sentence = refused(3, "attack", "--arrays", file, "--attack", "ls")
    assert "is a pickle, which can run any code when it is opened" in sentence
    assert line in sentence
    assert name in sentence
    assert "numpy.savez('seen.npz'" in sentence


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["attack", "--attack", "ls"], "attack takes one source"),
        (["attack", "runs", "--arrays", "seen.npz", "--attack", "ls"], "attack takes one source"),
        (["attack", "--arrays", "seen.npz", "--attack", "ls", "--verify", "3"], "belong to a run folder"),
        (["attack", "--arrays", "seen.npz", "--attack", "norm_scoring"], "does not solve linear equations"),
        (["attack", "--arrays", "seen.npz", "--attack", "ls", "--set", "q=1"], "q"),
        (["score", "estimate.npz"], "score takes one truth"),
        (["score", "estimate.npz", "--config", "a", "--truth", "b"], "score takes one truth"),
    ],
)
def test_flags_that_do_not_fit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "seen.npz")
    assert words in refused(2, *arguments)


def test_moments_that_an_attack_needs_are_asked_for(tmp_path: Path, refused: Refused) -> None:
    seen = saved(tmp_path / "seen.npz", mean=None, covariance=None)
    sentence = refused(8, "attack", "--arrays", seen, "--attack", "lmmse")
    assert sentence == f"attack 'lmmse' needs moments: add 'mean' and 'covariance' to {seen}"


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (None, "lacks 'x'"),
        (X[:3], r"has shape \(3, 2\), the estimate \(40, 2\)"),
        (X + 9, "leaves the bounds of the attack"),
    ],
)
def test_a_truth_that_does_not_fit_is_refused(
    tmp_path: Path, refused: Refused, x: Array | None, words: str
) -> None:
    out, truth = tmp_path / "estimate.npz", tmp_path / "truth.npz"
    attack_arrays(saved(tmp_path / "seen.npz"), "ls", out)
    np.savez(truth, **({"y": X} if x is None else {"x": x}))
    assert re.search(words, refused(3, "score", out, "--truth", truth))
    assert "is no estimate of given arrays" in refused(3, "score", truth, "--truth", truth)


@pytest.mark.parametrize("attack", first(["ls", "half_star", "cls", "rcc2", "chebyshev"]))
@pytest.mark.parametrize("columns", [2, 5])
def test_scores_in_a_wrong_order_are_named_before_any_figure(
    vflens: Run, tmp_path: Path, attack: str, columns: int
) -> None:
    """Three equations contradict each other on two columns; on five none of their points is in the box."""
    rng = np.random.default_rng(3)
    W, x = rng.normal(np.arange(4)[:, None], 1.0, (4, columns)), rng.random((30, columns))
    file, out, truth = (tmp_path / f"{name}.npz" for name in ("seen", "estimate", "truth"))
    np.savez(truth, x=x)
    for order, wrong in (([0, 1, 2, 3], False), ([3, 2, 1, 0], True)):
        np.savez(file, W=W, scores=softmax(x @ W.T, axis=1)[:, order])
        lines = [
            vflens("attack", "--arrays", file, "--attack", attack, "--out", out)[1],
            vflens("score", out, "--truth", truth)[1],
            "\n".join(re.findall(r"<p>(.*?)</p>", vl.estimate(attack, dict(np.load(file)))._repr_html_())),
        ]
        found = [
            re.match(r"(\d+) of 30 rows fit no values within the bounds: check the order", s) for s in lines
        ]
        assert [f is not None and int(f[1]) > 20 for f in found] == [wrong] * 3
