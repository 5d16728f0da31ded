"""Rows from their logits under a changing model: a low-rank factorisation, for any optimiser (ours).

Step t shows Z_t = X[B_t] W_tᵀ + 1 c_tᵀ for its batch B_t: known Z_t, unknown X (n, d), W_t, c_t. Every row
occurs once per epoch, each time under another W_t. With more rows in a batch than d + 1 and more logits of a
row (epochs × k) than d the factors are determined up to one invertible affine map of X. Alternating least
squares finds them: the steps given the rows, the rows given the steps; it starts from the principal
components of all logits of a row, epoch beside epoch, which would be exact if W_t were constant within an
epoch. Columns of X that are known make the unknown ones fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vflens.array import Array

_PULL = 1e-10  # share of the mean diagonal, pulls to the previous rows: directions without evidence stay
_FAINT = 1e-10  # share of the largest singular value: below it is rounding, no column
_ROUNDING, _STEEP = 1e-14, 1e-4  # of normal equations: makes them definite; less steep ones are decomposed
_CELLS = 4_000_000  # of the models of rows together
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
    stacks = list(_stacked(steps))
    places = _Places.of(stacks, n)
    misfit = np.full(n, np.inf)
    for _ in range(sweeps):
        both = np.hstack([x, own])
        models = [_models(both[of.rows], of.z) for of in stacks]
        misfit = _misfit(both, stacks, models) / spread
        if np.sqrt((misfit**2).mean()) < _EXACT:
            break
        x = _whitened(_rows(x, own, stacks, places, models))
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


class _Steps(NamedTuple):
    """T steps of one size B: positions ``rows`` (T, B), logits ``z`` (T, B, k)."""

    rows: Array
    z: Array


def _stacked(steps: Sequence[tuple[Array, Array]]) -> Iterator[_Steps]:
    """``steps`` by their size."""
    sizes: dict[int, list[tuple[Array, Array]]] = {}
    for step in steps:
        sizes.setdefault(len(step[0]), []).append(step)
    for same in sizes.values():
        yield _Steps(np.stack([rows for rows, _ in same]), np.stack([z for _, z in same]))


class _Places(NamedTuple):
    """Where each of n rows occurs, in order of the stacks: ``cells`` (n, E) counts the rows of all steps,
    ``steps`` (n, E) the steps. A row that occurs less often has places one after the last.
    """

    cells: Array
    steps: Array

    @classmethod
    def of(cls, stacks: Sequence[_Steps], n: int) -> _Places:
        """The places of ``n`` rows."""
        rows = np.concatenate([of.rows.ravel() for of in stacks])
        sizes = np.concatenate([np.full(len(of.rows), of.rows.shape[1]) for of in stacks])
        step = np.append(np.repeat(np.arange(len(sizes)), sizes), len(sizes))
        order, counts = np.argsort(rows, kind="stable"), np.bincount(rows, minlength=n)
        cells = np.full((n, counts.max()), len(rows))
        cells[np.arange(counts.max()) < counts[:, None]] = order
        return cls(cells, step[cells])


def _models(x: Array, z: Array) -> Array:
    """W over c, (T, d + 1, k), of least ‖x W + c − z‖ in each of T steps x (T, B, d), z (T, B, k).

    By normal equations, of columns or of fewer rows; where these are nearly singular the shortest of several
    answers, by a singular value decomposition.
    """
    with_ones = np.concatenate([x, np.ones((*x.shape[:2], 1))], axis=2)
    turned = with_ones.swapaxes(1, 2)
    few = x.shape[1] < with_ones.shape[2]
    squares = with_ones @ turned if few else turned @ with_ones
    mean = np.trace(squares, axis1=1, axis2=2) / squares.shape[1]
    L = np.linalg.cholesky(squares + (_ROUNDING * mean)[:, None, None] * np.eye(squares.shape[1]))
    steepness = np.diagonal(L, axis1=1, axis2=2)
    flat = steepness.min(axis=1) <= _STEEP * steepness.max(axis=1)
    squares[flat] = np.eye(squares.shape[1])
    found: Array = turned @ np.linalg.solve(squares, z) if few else np.linalg.solve(squares, turned @ z)
    if flat.any():
        found[flat] = np.linalg.pinv(with_ones[flat], rcond=np.finfo(float).eps * max(x.shape[1:])) @ z[flat]
    return found


def _rows(
    before: Array, own: Array, stacks: Sequence[_Steps], places: _Places, models: Sequence[Array]
) -> Array:
    """All rows (n, d) given the steps' models and ``own`` columns, by normal equations."""
    (n, d), k = before.shape, stacks[0].z.shape[2]
    left = [
        steps.z - own[steps.rows] @ model[:, d:-1] - model[:, -1:]
        for steps, model in zip(stacks, models, strict=True)
    ]
    nothing = np.zeros((1, k))
    seen = np.concatenate([*(z.reshape(-1, k) for z in left), nothing])
    W = np.concatenate([*(model[:, :d].swapaxes(1, 2) for model in models), np.zeros((1, k, d))])
    M, right = np.empty((n, d, d)), np.empty((n, d, 1))
    for some in np.array_split(np.arange(n), 1 + places.cells.size * k * d // _CELLS):
        A = W[places.steps[some]].reshape(len(some), -1, d)
        np.matmul(A.swapaxes(1, 2), A, out=M[some[0] : some[-1] + 1])
        right[some] = A.swapaxes(1, 2) @ seen[places.cells[some]].reshape(len(some), -1, 1)
    pull = _PULL * np.trace(M, axis1=1, axis2=2).mean()
    x: Array = np.linalg.solve(M + pull * np.eye(d), right + pull * before[..., None])[..., 0]
    return x


def _misfit(x: Array, stacks: Sequence[_Steps], models: Sequence[Array]) -> Array:
    """Each row's root mean square of z − x W − c (n,)."""
    squares, counts = np.zeros(len(x)), np.zeros(len(x))
    for steps, model in zip(stacks, models, strict=True):
        missed = ((steps.z - x[steps.rows] @ model[:, :-1] - model[:, -1:]) ** 2).mean(axis=2)
        squares += np.bincount(steps.rows.ravel(), missed.ravel(), len(x))
        counts += np.bincount(steps.rows.ravel(), minlength=len(x))
    rms: Array = np.sqrt(squares / np.maximum(counts, 1))
    return rms
