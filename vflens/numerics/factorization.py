"""Rows from their logits under a changing model: a low-rank factorisation, for any optimiser (ours).

Step t shows Z_t = X[B_t] W_tᵀ + 1 c_tᵀ for its batch B_t: known Z_t, unknown X (n, d), W_t, c_t. Every row
occurs once per epoch, each time under another W_t. With more rows in a batch than d + 1 and more logits of a
row (epochs × k) than d the factors are determined up to one invertible affine map of X. Alternating least
squares finds them: the steps given the rows, the rows given the steps; it starts from the principal
components of all logits of a row, epoch beside epoch, which would be exact if W_t were constant within an
epoch. Columns of X that are known make the unknown ones fewer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from vflens.array import Array

_PULL = 1e-10  # share of the mean diagonal, pulls to the previous rows: directions without evidence stay
_FAINT = 1e-10  # share of the largest singular value: below it is rounding, no column
_EXACT = 1e-12  # relative residual at which the sweeps end


@dataclass(frozen=True, eq=False)
class Factors:
    """Rows ``x`` (n, d), up to an affine map; ``residual`` (n,) is each row's rms misfit over the spread of
    all logits.

    Columns are centred, uncorrelated and of unit variance; columns without evidence in the logits are 0.
    """

    x: Array
    residual: Array


def factorize(
    steps: Sequence[tuple[Array, Array]],
    n: int,
    d: int,
    sweeps: int,
    known: Array | None = None,
    *,
    done: Callable[[], None] = lambda: None,
) -> Factors:
    """The rows behind ``steps``, pairs of positions int (B,), distinct within a step, and logits (B, k).

    Args:
        steps: in order; every one of the ``n`` rows must occur.
        n: rows.
        d: unknown columns, at most n − 1.
        sweeps: of alternating least squares, at most.
        known: columns of all rows (n, m) that the logits count as well; the affine map is then one of these
            too.
        done: called after each sweep.
    """
    logits = np.concatenate([z for _, z in steps])
    spread = float(np.sqrt(((logits - logits.mean(axis=0)) ** 2).mean())) or 1.0
    own = np.zeros((n, 0)) if known is None else known
    x = _whitened(_principal(steps, n, d, own))
    seen = _incidence([rows for rows, _ in steps], n)
    misfit = np.full(n, np.inf)
    for _ in range(sweeps):
        both = np.hstack([x, own])
        models = [_model(both[rows], z) for rows, z in steps]
        misfit = _misfit(both, steps, models) / spread
        if np.sqrt((misfit**2).mean()) < _EXACT:
            break
        left = [(rows, z - own[rows] @ W[:, d:].T) for (rows, z), (W, _) in zip(steps, models, strict=True)]
        x = _whitened(_rows(x, left, [(W[:, :d], c) for W, c in models], seen))
        done()
    return Factors(x, misfit)


def _principal(steps: Sequence[tuple[Array, Array]], n: int, d: int, own: Array) -> Array:
    """The d leading components (n, d) of each row's logits in order of appearance, cut to the shortest; of
    what ``own`` columns leave of them.
    """
    counts = np.zeros(n, np.int64)
    k = steps[0][1].shape[1]
    most = max(int(np.bincount(np.concatenate([r for r, _ in steps]), minlength=n).min()), 1)
    stacked = np.zeros((n, most, k))
    for rows, z in steps:
        early = counts[rows] < most
        stacked[rows[early], counts[rows[early]]] = z[early]
        counts[rows] += 1
    flat = stacked.reshape(n, -1)
    flat, own = flat - flat.mean(axis=0), own - own.mean(axis=0)
    U, s, _ = np.linalg.svd(flat - own @ np.linalg.lstsq(own, flat, rcond=None)[0], full_matrices=False)
    found = np.zeros((n, d))
    found[:, : min(d, len(s))] = (U * s)[:, :d]
    return found


def _whitened(x: Array) -> Array:
    """``x`` centred, its columns orthogonal and of unit variance, one choice among affine maps; rounding
    becomes 0.
    """
    U, s, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    white: Array = U * np.sqrt(len(x)) * (s > _FAINT * s[0])
    return white


def _model(x: Array, z: Array) -> tuple[Array, Array]:
    """W (k, d) and c (k,) of least ‖x Wᵀ + c − z‖."""
    solution = np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]), z, rcond=None)[0]
    return solution[:-1].T, solution[-1]


def _rows(
    before: Array,
    steps: Sequence[tuple[Array, Array]],
    models: Sequence[tuple[Array, Array]],
    seen: csr_matrix,
) -> Array:
    """All rows (n, d) given the steps' models, by normal equations."""
    d = before.shape[1]
    grams = seen @ np.stack([(W.T @ W).ravel() for W, _ in models])
    right = np.zeros((seen.shape[0], d))
    for (rows, z), (W, c) in zip(steps, models, strict=True):
        right[rows] += (z - c) @ W
    M = grams.reshape(-1, d, d)
    pull = _PULL * np.trace(M, axis1=1, axis2=2).mean()
    x: Array = np.linalg.solve(M + pull * np.eye(d), (right + pull * before)[..., None])[..., 0]
    return x


def _misfit(x: Array, steps: Sequence[tuple[Array, Array]], models: Sequence[tuple[Array, Array]]) -> Array:
    """Each row's root mean square of z − x Wᵀ − c (n,)."""
    squares, counts = np.zeros(len(x)), np.zeros(len(x))
    for (rows, z), (W, c) in zip(steps, models, strict=True):
        squares[rows] += ((z - x[rows] @ W.T - c) ** 2).mean(axis=1)
        counts[rows] += 1
    rms: Array = np.sqrt(squares / np.maximum(counts, 1))
    return rms


def _incidence(batches: Sequence[Array], n: int) -> csr_matrix:
    """Which row was in which batch, (n, T)."""
    columns = np.repeat(np.arange(len(batches)), [len(b) for b in batches])
    rows = np.concatenate(batches)
    return csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(n, len(batches)))
