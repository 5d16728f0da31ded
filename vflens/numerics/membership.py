"""Was a row in a model's training set? Scores of rows from the model's answers; members have larger ones.

From the loss alone (Yeom et al., 2018), or beside shadow models, which were trained with and without each row
(Carlini et al., 2022, LiRA). :mod:`vflens.numerics.measures.ranking` measures how well they tell them apart.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import entr, logsumexp

from vflens.array import Array
from vflens.words import counted

_NEVER = -1e60  # a belief
_LEAST_VARIANCE = 1e-12  # of confidences: shadow models that agree exactly


def loss_scores(logits: Array, labels: Array) -> Array:
    """Each row's ln p_y (n,), minus its cross-entropy: a model knows its training rows better.

    Args:
        logits: (n, k), up to one number per row.
        labels: (n,).
    """
    scores: Array = _of_label(logits, labels) - logsumexp(logits, axis=-1)
    return scores


def sureness(log_p: Array, *, entropy: bool = False) -> Array:
    """Each row's largest ln p_c (n,), or minus the entropy of p: neither needs a label (Salem et al., 2019).

    Args:
        log_p: log-probabilities (n, k), finite.
        entropy: the latter.
    """
    found: Array = -entr(np.exp(log_p)).sum(axis=-1) if entropy else log_p.max(axis=-1)
    return found


def source_beliefs(scores: Array, known: Sequence[Array]) -> Array:
    """A belief (n, K) in each of K sites, from the ``scores`` (n, k) of rows and of ``known`` rows (m, k) of
    each site, in log-probabilities: larger where the mean of its known rows is nearer, among rows of one
    largest score, in units of their spread within sites. A class without known rows of a site is not its.
    """
    asked, others = _odds(scores), [_odds(k) for k in known]
    beliefs, named = np.full((len(scores), len(known)), _NEVER), scores.argmax(axis=1)
    for c in np.unique(named):
        of_class = {i: o[k.argmax(axis=1) == c] for i, (k, o) in enumerate(zip(known, others, strict=True))}
        means = {i: rows.mean(axis=0) for i, rows in of_class.items() if len(rows)}
        spread = np.concatenate([asked[:0], *(of_class[i] - mean for i, mean in means.items())])
        inverse = np.linalg.pinv(spread.T @ spread / max(1, len(spread)), rcond=1e-9, hermitian=True)
        for i, mean in means.items():
            beside = asked[named == c] - mean
            beliefs[named == c, i] = -((beside @ inverse) * beside).sum(axis=1)
    return beliefs


def _odds(scores: Array) -> Array:
    """Log-odds (n, k − 1) against the first class."""
    odds: Array = scores[:, 1:] - scores[:, :1]
    return odds


def scaled_confidences(logits: Array, labels: Array) -> Array:
    """φ = ln(p_y/(1 − p_y)) = z_y − ln Σ_{c≠y} exp z_c (…, n), nearly Gaussian over models (§V.B).

    Args:
        logits: (…, n, k), k ≥ 2: finite, up to one number per row.
        labels: (n,).
    """
    others = np.where(np.arange(logits.shape[-1]) == labels[:, None], -np.inf, logits)
    scaled: Array = _of_label(logits, labels) - logsumexp(others, axis=-1)
    return scaled


def shadow_members(models: int, rows: int, rng: np.random.Generator) -> Array:
    """Which of ``rows`` each shadow model is trained on, bool (models, rows): each row is in half of them.

    Raises:
        ValueError: ``models`` is odd or below 4: fewer than two with, or without, a row have no variance.
    """
    if models < 4 or models % 2:
        raise ValueError(f"{counted(models, 'shadow model')}: give an even number from 4")
    order = rng.random((models, rows)).argsort(axis=0)
    members: Array = order < models // 2
    return members


def online_scores(observed: Array, shadows: Array, members: Array, *, pooled: bool = False) -> Array:
    """Each row's ln N(φ; μ_in, σ²_in) − ln N(φ; μ_out, σ²_out), (n,) (§V, algorithm 1).

    Args:
        observed: φ of the rows under the attacked model (n,).
        shadows: φ under each shadow model (m, n).
        members: which rows each was trained on, bool (m, n).
        pooled: one variance for all rows, which few shadow models estimate better (§VI.C).

    Raises:
        ValueError: a row has fewer than two shadow models with it, or without.
    """
    inside, outside = (_gaussian(shadows, which, pooled) for which in (members, ~members))
    return _log_density(observed, *inside) - _log_density(observed, *outside)


def _of_label(logits: Array, labels: Array) -> Array:
    of_label: Array = logits[..., np.arange(len(labels)), labels]
    return of_label


def _gaussian(shadows: Array, which: Array, pooled: bool) -> tuple[Array, Array]:
    """Mean and variance (n,) of each column of ``shadows`` over ``which`` of its entries."""
    count = which.sum(axis=0)
    if count.min(initial=2) < 2:
        raise ValueError(
            f"row {int(count.argmin())} has {counted(int(count.min()), 'shadow model')} of one kind: train "
            "at least two with it and two without it"
        )
    mean = np.where(which, shadows, 0).sum(axis=0) / count
    squares = np.where(which, (shadows - mean) ** 2, 0).sum(axis=0)
    variance = squares.sum() / (count - 1).sum() if pooled else squares / (count - 1)
    return mean, np.maximum(np.broadcast_to(variance, mean.shape), _LEAST_VARIANCE)


def _log_density(x: Array, mean: Array, variance: Array) -> Array:
    """The log-density of N(mean, variance), without the constant."""
    density: Array = -0.5 * ((x - mean) ** 2 / variance + np.log(variance))
    return density
