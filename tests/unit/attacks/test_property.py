"""Attacks on properties against linear algebra: means of linear embeddings determine those of the columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vflens.attacks.helpers.people import populations
from vflens.attacks.helpers.people.populations import draws, told_mean
from vflens.attacks.helpers.people.property import PropertyAttack, means_of
from vflens.attacks.property_embeddings import PropertyEmbeddings
from vflens.attacks.property_guess import PropertyGuess
from vflens.attacks.property_scores import PropertyScores, site_of
from vflens.models.alone import train_alone
from vflens.models.settings import Training
from vflens.plugins.views.vertical import AdversaryView
from vflens.storage.journal import Messages
from vflens.types import Array, ColumnInfo, Exchange, Knowledge, PartyInfo, Phase, Point, Released, Role

KNOWN, TRAINED, ASKED = 150, 400, 600
COLUMNS = tuple(ColumnInfo(name, 0, 1) for name in ("woman", "age"))


def _table(share: float = 0.9) -> tuple[Array, Array, Array]:
    """Own columns (N, 1), the target's (N, 2) and labels: of training rows a third are women, of those asked
    for a ``share``.
    """
    rng = np.random.default_rng(3)
    women = rng.random(TRAINED + ASKED) < np.repeat([1 / 3, share], [TRAINED, ASKED])
    x = np.column_stack([women, rng.random(len(women))])
    own = rng.random((len(women), 1))
    return own, x, (x @ [4.0, 1.0] + own[:, 0] > 2.5).astype(np.int64)


def _seal(point: Point, phase: Phase, rows: Array, **tensors: Array) -> Released:
    sender = "c" if point is Point.SCORES else "t"
    return Released(sender, Exchange("run", phase, 0, 0), point, rows.astype(np.int32), tensors=tensors)


def _view(h: Array, log_scores: Array, share: float = 0.9) -> tuple[AdversaryView, Array]:
    """A view on the rows asked for, and the true means (2,) of their columns."""
    own, x, labels = _table(share)
    trained, asked = np.arange(TRAINED), np.arange(TRAINED, TRAINED + ASKED, dtype=np.int32)
    messages = [
        _seal(Point.AUXILIARY, Phase.DISCLOSE, trained[:KNOWN], features=x[:KNOWN]),
        _seal(Point.EMBEDDING, Phase.TRAIN, trained, embedding=h[trained]),
        _seal(Point.EMBEDDING, Phase.PREDICT, asked, embedding=h[asked]),
        _seal(Point.SCORES, Phase.PREDICT, asked, scores=log_scores[asked]),
    ]
    settings: dict[str, Any] = {"party": "me", "target": "t", "n_classes": 2}
    view = AdversaryView(
        rows=asked,
        transcript=Messages(messages),
        own={"features": own, "labels": labels},
        parties=[
            PartyInfo("me", Role.ACTIVE, columns=(ColumnInfo("own", 0, 1),)),
            PartyInfo("t", Role.PASSIVE, columns=COLUMNS),
        ],
        needs=frozenset(Knowledge),
        phases=frozenset(Phase),
        training=trained.astype(np.int32),
        schedule=Training(epochs=30, batch_size=32, learning_rate=0.1),
        **settings,
    )
    return view, x[asked].mean(axis=0)


def _off(attack: PropertyAttack, view: AdversaryView, truth: Array) -> Array:
    """Distances (2,) of the columns' means."""
    found = attack.reconstruct(view, rng=np.random.default_rng(1)).values
    assert (found == found[0]).all()  # it estimates a population
    errors: Array = np.abs(found[0] - truth)
    return errors


def _errors(attack: PropertyAttack, *, noise: float = 0.0, turned: bool = False) -> Array:
    """With linear embeddings, and ``noise`` on them; or ``turned``: each row's have a sign of its own."""
    _, x, _ = _table()
    rng = np.random.default_rng(5)
    h = x @ [[1.0, 2.0, -1.0], [0.5, -1.0, 1.0]] + 0.3
    h = h + noise * rng.normal(size=h.shape)
    h = h * rng.choice([-1, 1], (len(h), 1)) if turned else h
    return _off(attack, *_view(h, np.zeros((len(h), 2))))


def _errors_of_scores(share: float) -> tuple[float, float]:
    """Errors of the share of women, by scores of a model trained as the federation's, and of the guess."""
    own, x, labels = _table(share)
    table, rng = np.concatenate([own, x], axis=1), np.random.default_rng(9)
    view, _ = _view(np.zeros((len(x), 3)), np.zeros((len(x), 2)), share)
    ask = train_alone(
        view.model,
        site_of(view, 3, rng),
        table.__getitem__,
        labels,
        np.arange(TRAINED, dtype=np.int32),
        rng=rng,
    )
    seen = _view(np.zeros((len(x), 3)), ask(np.arange(len(x), dtype=np.int32)), share)
    found, guess = (_off(attack, *seen)[0] for attack in (PropertyScores(), PropertyGuess()))
    return float(found), float(guess)


def test_means_of_linear_embeddings_determine_those_of_the_columns() -> None:
    """With H = X W + b and W of full rank the column means are those of H back through W."""
    assert _errors(PropertyEmbeddings()).max() < 0.01
    assert _errors(PropertyGuess())[0] > 0.3  # own columns say nothing of the shift


def test_what_populations_teach_follows_from_their_means(monkeypatch: pytest.MonkeyPatch) -> None:
    """The heart of it: with the populations' means in another order nothing is learnt."""
    honest = _errors(PropertyEmbeddings())[0]

    def shuffled(column: Array, shift: float, n: int, rest: Any) -> Array:
        return np.tile(np.random.default_rng(len(column)).permutation(len(column)), (n, 1))

    monkeypatch.setattr(populations, "draws", shuffled)
    assert _errors(PropertyEmbeddings())[0] > 20 * honest


def test_norms_tell_what_means_do_not() -> None:
    """ProVFL's observation, where signs are drawn anew for each row."""
    assert _errors(PropertyEmbeddings(), turned=True)[0] < 0.05


def test_noise_on_embeddings_leaves_the_guess() -> None:
    """What errs least on the half that was not fitted to is next to nothing of noise that hides all."""
    found, guess = (_errors(attack, noise=1000.0)[0] for attack in (PropertyEmbeddings(), PropertyGuess()))
    assert found == pytest.approx(guess, abs=0.1)


@pytest.mark.parametrize("share", [0.1, 0.6, 0.75])
def test_scores_of_a_shifted_population_tell_its_share(share: float) -> None:
    """Shadow models learn which score the share makes; own columns say nothing. An end of the box, to which
    wild estimates are clipped, errs by .1 at least.
    """
    found, guess = _errors_of_scores(share)
    assert found < 0.08
    assert guess > 0.2


@pytest.mark.parametrize("m", [2, 30, 151])
def test_populations_are_drawn_together_as_one_after_the_other(m: int) -> None:
    """To the bit, and so are the means that are their features: by numpy's own weighted choice."""
    column, known = np.random.default_rng(m).random(m) < 0.4, np.random.default_rng(m + 1).random((m, 5))
    column[0] = not column[1]
    one, z = np.random.default_rng(8), (column - column.mean()) / column.std()
    each = []
    for _ in range(200):
        weights = np.exp(one.normal(0, 1.5) * z)
        each.append(one.choice(m, m, p=weights / weights.sum()))
    together = np.random.default_rng(8)
    chosen = draws(column.astype(float), 1.5, 200, together)
    np.testing.assert_array_equal(chosen, each)
    assert together.random() == one.random()  # what is drawn next is the same too
    for q in (0, 1, 5):
        expected = [known[c, :q].mean(axis=0) for c in each]
        np.testing.assert_array_equal(means_of(known[:, :q], known[:, :q]).of_known(chosen), expected)


def test_populations_lie_as_far_as_asked() -> None:
    """By weights exp(λ z), λ ~ N(0, s²), means lie s deviations away, to first order in s."""
    rng, column = np.random.default_rng(2), np.random.default_rng(4).random(2000)
    means = np.array([column[c].mean() for c in draws(column, 0.2, 400, rng)])
    assert means.std() == pytest.approx(0.2 * column.std(), rel=0.15)
    assert means.mean() == pytest.approx(column.mean(), abs=0.01)


def test_regression_through_the_known_mean_is_the_closed_form() -> None:
    """Without noise a mean is that of the known rows and (f − f₀)·b, b the least squares of x on f there."""
    rng = np.random.default_rng(6)
    f = rng.normal(size=(200, 3))
    x = f @ [0.3, -0.2, 0.1] + 0.5
    facts = np.array([0.4, 0.1, -0.3])
    found = told_mean(x, lambda c: f[c].mean(axis=1), facts, populations=200, shift=1.0, rng=rng)
    assert found == pytest.approx(0.5 + facts @ [0.3, -0.2, 0.1], abs=1e-3)


def test_the_penalty_is_chosen_on_rows_that_were_not_fitted_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least one makes much of noise, the chosen one little: over six draws."""

    def moved(seed: int) -> float:
        rng = np.random.default_rng(seed)
        x, f, facts = (rng.random(80) < 0.4).astype(float), rng.normal(size=(80, 60)), rng.normal(0, 0.3, 60)
        found = told_mean(x, lambda c: f[c].mean(axis=1), facts, populations=100, shift=1.0, rng=rng)
        return float(abs(found - x.mean()))

    chosen = np.mean([moved(seed) for seed in range(6)])
    monkeypatch.setattr(populations, "STRENGTHS", populations.STRENGTHS[:1])
    assert chosen < 0.5 * np.mean([moved(seed) for seed in range(6)])


@pytest.mark.parametrize("column", [np.full(9, 0.25), np.array([0.0, 1.0, 0.5])], ids=["constant", "few"])
def test_few_or_equal_rows_give_their_mean(column: Array) -> None:
    featured = np.eye(len(column)).__getitem__
    settings: dict[str, Any] = {"populations": 10, "shift": 1.0, "rng": np.random.default_rng(0)}
    assert told_mean(column, featured, np.ones(len(column)), **settings) == column.mean()
