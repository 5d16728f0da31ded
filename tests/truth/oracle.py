"""What an adversary of unlimited skill takes of a table, by other means than the product's attacks.

A prediction gives y = A x. The oracle draws tens of thousands of rows anew, sorts them by y, and answers for
each row what other rows of nearly the same y say: their mean, the interval that holds most of them, their
most frequent value. With more rows this becomes the best answer of all, the Bayes estimate. Where y tells
rows apart without a tie, or is as many equations as there are columns, everything is found. Nothing here is
imported from the product.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
ROWS = 24_000
NEAR = 200  # rows of nearly the same y that answer together
EXACT = 1e-9


class Share(NamedTuple):
    """What is taken of each column (d,), as shares of what a blind guess leaves open: of squared errors, of
    cells beyond a tolerance, and of wrong values (NaN of a column of many).
    """

    error: Array
    within: Array
    right: Array


def weights(std: Array, classes: int, rng: np.random.Generator) -> Array:
    """A (classes − 1, d) of a model drawn as an audit says that it draws: normal over standard deviations."""
    drawn = rng.normal(size=(classes, len(std)))
    drawn = np.where(std > EXACT, drawn / np.where(std > EXACT, std, 1.0), 0.0)
    found: Array = drawn[1:] - drawn[:-1]
    return found


def covariance(x: Array) -> Array:
    """The covariance (d, d) of the columns of ``x`` (n, d), 0 of constants."""
    found: Array = np.atleast_2d(np.cov(x.T)) * np.outer(*[x.std(axis=0) > EXACT] * 2)
    return found


def linear(cov: Array, A: Array) -> Array:
    """The shares (d,) that the best affine answer to A x takes: no adversary takes less."""
    var = np.diag(cov)
    seen = A @ cov
    gain = np.einsum("md,md->d", seen, np.linalg.pinv(seen @ A.T, rcond=1e-10, hermitian=True) @ seen)
    taken: Array = np.divide(gain, var, out=np.zeros_like(var), where=var > 0)
    return taken


def bayes(x: Array, y: Array, width: Array) -> Share:
    """What the best answer to ``y`` (n, m) takes of ``x`` (n, d), with tolerances ``width`` (d,)."""
    n, d = x.shape
    varies = (x.std(axis=0) > EXACT) & bool(y.std(axis=0).any())
    few = np.array([len(np.unique(column)) <= 20 for column in x.T])
    if _tells_apart(x, y):
        every = varies.astype(float)
        return Share(every, every, np.where(few, every, np.nan))
    known = np.column_stack([np.ones(n), y])
    answer = known @ np.linalg.lstsq(known, x, rcond=1e-10)[0]
    error, within, right = np.zeros((3, d))
    for j in np.flatnonzero(varies):
        if ((answer[:, j] - x[:, j]) ** 2).mean() < EXACT * x[:, j].var():
            error[j] = within[j] = right[j] = 1.0
        else:
            error[j], within[j], right[j] = _near(
                x[:, j], answer[:, j] if y.shape[1] > 1 else y[:, 0], width[j]
            )
    return Share(error, within, np.where(few, right, np.nan))


def _tells_apart(x: Array, y: Array) -> bool:
    """Whether few different rows have as many different ``y``, further apart than rounding."""
    rows, first = np.unique(x, axis=0, return_index=True)
    if len(rows) > len(x) / 4 or len(rows) == 1:
        return False
    seen = y[first][np.lexsort(y[first].T)]
    return bool(np.abs(np.diff(seen, axis=0)).max(axis=1).min() > EXACT)


def _near(x: Array, y: Array, width: float) -> tuple[float, float, float]:
    """One column (n,): even rows of a chunk of nearly one ``y`` answer for its odd ones."""
    chunks = x[np.argsort(y, kind="stable")][: len(x) // (2 * NEAR) * 2 * NEAR].reshape(-1, 2 * NEAR)
    learn, test = chunks[:, ::2], chunks[:, 1::2]
    wrong = ((test - learn.mean(axis=1, keepdims=True)) ** 2).mean() / (1 + 1 / NEAR)
    densest = np.array([_densest(np.sort(one), width) for one in learn])[:, None]
    modes = np.array([_mode(one) for one in learn])[:, None]
    found = (np.abs(test - densest) <= width * (1 + 1e-9)).mean()
    blind = (np.abs(test - _densest(np.sort(learn.ravel()), width)) <= width * (1 + 1e-9)).mean()
    guess = (test == _mode(learn.ravel())).mean()
    over = [(a - b) / (1 - b) if b < 1 else 0.0 for a, b in ((found, blind), ((test == modes).mean(), guess))]
    return max(0.0, 1 - wrong / x.var()), max(0.0, over[0]), max(0.0, over[1])


def _densest(ordered: Array, width: float) -> float:
    ends = np.searchsorted(ordered, ordered + 2 * width * (1 + 1e-12), side="right")
    first = int((ends - np.arange(len(ordered))).argmax())
    return float((ordered[first] + ordered[ends[first] - 1]) / 2)


def _mode(values: Array) -> float:
    letters, count = np.unique(values, return_counts=True)
    return float(letters[count.argmax()])


class Trained(NamedTuple):
    """Softmax regression by plain steps from zero: the last ``weight`` (k, d), and the logits (n, k) that the
    ``mine`` first columns gave in each epoch, as they are sent batch by batch.
    """

    weight: Array
    sent: list[Array]


def trained(
    x: Array, labels: Array, mine: int, rng: np.random.Generator, *, epochs: int, rate: float, batch: int = 64
) -> Trained:
    """A model of ``x`` (n, d) and ``labels`` int (n,)."""
    n, d = x.shape
    truth = np.eye(labels.max(initial=1) + 1)[labels]
    weight, seen = np.zeros((truth.shape[1], d)), []
    for _ in range(epochs):
        sent = np.zeros(truth.shape)
        for rows in np.array_split(rng.permutation(n), max(1, n // batch)):
            sent[rows] = x[rows, :mine] @ weight[:, :mine].T
            z = x[rows] @ weight.T
            p = np.exp(z - z.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            weight = weight - rate * (p - truth[rows]).T @ x[rows] / len(rows)
        seen.append(sent)
    return Trained(weight, seen)


def in_training(x: Array, sent: list[Array]) -> tuple[Array, Array]:
    """The shares (d,) that messages of training, logits (n, k) of each epoch, give away of ``x`` (n, d), at
    least and at most: half of the rows tell the affine map for the others; constants tell nothing.
    """
    z = np.column_stack([np.ones(len(x)), *sent])
    answer = z[1::2] @ np.linalg.lstsq(z[::2], x[::2], rcond=1e-10)[0]
    most = (x.std(axis=0) > EXACT) & bool(z[:, 1:].any())
    var = np.where(most, x.var(axis=0), 0.0)
    wrong = ((answer - x[1::2]) ** 2).mean(axis=0)
    taken = np.maximum(0.0, 1 - np.divide(wrong, var, out=np.ones_like(var), where=var > 0))
    return taken, most.astype(float)
