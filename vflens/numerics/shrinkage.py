"""Mean and covariance from few rows."""

from collections.abc import Sequence

import numpy as np

from vflens.array import Array


def estimated_moments(rows: Array) -> tuple[Array, Array | None]:
    """Mean (d,) and :func:`shrunk_covariance` (d, d) of ``rows`` float64 (n, d); None of a single row, which
    has no spread to measure.
    """
    return rows.mean(axis=0), shrunk_covariance(rows) if len(rows) > 1 else None


def block_diagonal(blocks: Sequence[Array]) -> Array:
    """The square ``blocks`` float64 along the diagonal of a matrix, with zeros beside them; of
    ``scipy.linalg.block_diag`` the case that needs no SciPy.
    """
    ends = np.cumsum([len(block) for block in blocks])
    matrix = np.zeros((ends[-1], ends[-1]))
    for block, end in zip(blocks, ends, strict=True):
        own = slice(end - len(block), end)
        matrix[own, own] = block
    return matrix


def shrunk_covariance(rows: Array) -> Array:
    """Covariance (d, d) of ``rows`` float64 (n, d), n ≥ 2: (1 − ρ) S + ρ tr(S)/d I, S the empirical one
    (divided by n).

    ρ estimates the share that minimises the expected squared Frobenius error: O. Ledoit and M. Wolf, A
    well-conditioned estimator for large-dimensional covariance matrices, J. Multivariate Anal. 88 (2004),
    section 3. Up to 999 columns the result equals that of ``sklearn.covariance.ledoit_wolf`` to the bit, in
    the same order of sums; a party that computes two moments need not load that library.
    """
    n, d = rows.shape
    x = rows - rows.mean(axis=0)
    squares = x**2
    if d == 1:
        return np.atleast_2d(squares.mean())
    gram, variances = np.dot(x.T, x), squares.sum(axis=0) / n
    scale = variances.sum() / d
    norm = np.sum(gram**2) / n**2
    distance = (norm - 2.0 * scale * variances.sum() + d * scale**2) / d
    noise = min(1.0 / (d * n) * (np.sum(np.dot(squares.T, squares)) / n - norm), distance)
    share = 0.0 if noise == 0 else noise / distance
    shrunk: Array = gram / n
    scale = np.trace(shrunk) / d
    shrunk *= 1.0 - share
    shrunk.flat[:: d + 1] += share * scale
    return shrunk
