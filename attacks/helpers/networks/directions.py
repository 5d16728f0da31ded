"""Directions of vectors: their cosines, and clusters of those that point to one side."""

from itertools import groupby

import numpy as np

from vflens.errors import KnowledgeError
from vflens.plugins.arrivals import latest
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Phase, Point
from vflens.words import counted

#: Of a cosine: further ones come from float32's rounding, and would rank rows of equal direction.
DECIMALS = 6
_STARTS, _ROUNDS = 10, 100


def directions(vectors: Array) -> Array:
    """``vectors`` (n, w) of length 1 in float64; one of length 0 stays."""
    vectors = vectors.astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: Array = vectors / np.where(lengths > 0, lengths, 1.0)
    return found


def gradient_directions(view: AdversaryView, rows: Array) -> Array:
    """Directions (n, w) of the sum of all gradients of each of ``rows`` (n,).

    Those of early epochs are long and count most, and noise that is drawn anew each epoch averages out.

    Raises:
        KnowledgeError: no gradient of some row arrived.
    """
    sums = np.zeros_like(view.gradients(rows))  # refuses a row without one
    order = np.argsort(rows, kind="stable")
    for _, arrived, values in view.batches(Point.GRADIENT, Phase.TRAIN) if len(rows) else ():
        found = np.searchsorted(rows, arrived, sorter=order).clip(max=len(rows) - 1)
        asked = rows[order[found]] == arrived
        sums[order[found[asked]]] += values[asked]
    return directions(sums)


def first_gradients(view: AdversaryView, rows: Array) -> Array:
    """The gradient (n, w) of each row's own loss in the first recorded epoch.

    Raises:
        KnowledgeError: it has none of some row.
    """
    epochs = groupby(view.batches(Point.GRADIENT, Phase.TRAIN), key=lambda message: message[0].round)
    _, first = next(epochs, (0, iter(())))
    values, seen = latest(((arrived, found) for _, arrived, found in first), rows)
    if not seen.all():
        raise KnowledgeError(
            f"the first recorded epoch has no gradient of {counted(int((~seen).sum()), 'row')}: record whole "
            "epochs"
        )
    return values


def beliefs(cosines: Array) -> Array:
    """Cosines (n, k) as beliefs: 1 + cos over the sum of the row; equal ones where all are −1."""
    closeness = np.clip(1 + cosines.round(DECIMALS), 0, 2)
    sums = closeness.sum(axis=1, keepdims=True)
    shares = np.where(sums > 0, closeness, 1.0)
    found: Array = shares / shares.sum(axis=1, keepdims=True)
    return found


def clusters(points: Array, k: int, rng: np.random.Generator) -> Array:
    """Centres (k, w) of length 1 of the ``points`` (n, w) of length 1, by spherical k-means (Dhillon and
    Modha, 2001).

    The best of ten starts is kept, each of points drawn as k-means++ draws them (Arthur and Vassilvitskii,
    2007).
    """
    found = [improved(points, _start(points, k, rng)) for _ in range(_STARTS)]
    return max(found, key=lambda centres: float((points @ centres.T).max(axis=1).sum()))


def _start(points: Array, k: int, rng: np.random.Generator) -> Array:
    """``k`` of the points: each is likelier the farther it is from those before."""
    chosen = [int(rng.integers(len(points)))]
    while len(chosen) < k:
        away = np.clip(1 - (points @ points[chosen].T).max(axis=1), 0, None)
        far = away.sum() > 0
        chosen.append(int(rng.choice(len(points), p=away / away.sum() if far else None)))
    return points[chosen]


def improved(points: Array, centres: Array) -> Array:
    """Each centre the direction of its points' sum, until no point changes its centre."""
    nearest = np.full(len(points), -1)
    for _ in range(_ROUNDS):
        before, nearest = nearest, (points @ centres.T).argmax(axis=1)
        if np.array_equal(before, nearest):
            break
        members = nearest == np.arange(len(centres))[:, None]
        sums = members.astype(float) @ points
        moved = np.linalg.norm(sums, axis=1, keepdims=True) > 0
        centres = np.where(moved, directions(sums), centres)
    return centres


def has_top(view: AdversaryView) -> bool:
    """Whether a top model stands between the embeddings and the logits: their gradients differ."""
    return not view.model.linear and view.model.network().trainable_top
