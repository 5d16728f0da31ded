"""The closed form for an adversary who solves for x with a matrix that may be wrong.

The right-hand sides are exact, b' = A x. The adversary uses Aₙ, which differs from A if the passive party
discloses other weights or trains on other inputs. The moments are those of the given rows, so that closed
form and measurement on them agree up to rounding.
"""

import math
from dataclasses import dataclass

import numpy as np

from vflens.array import Array
from vflens.numerics.linear_system import row_basis
from vflens.numerics.theory import closed_forms as theory
from vflens.numerics.theory import distortion_theory as distorted

_SAME = 1e-9  # relative: matrices nearer than this differ by rounding


@dataclass(frozen=True)
class StatedError:
    """A paper's ``statement`` and its ``mse`` per feature of an unclipped estimate; ``upper`` is NaN without
    one.
    """

    statement: str
    mse: float
    upper: float = math.nan


def closed_form(center: float, A: Array, believed: Array, x: Array) -> StatedError | None:
    """The MSE of the solution of ``believed`` x = A x nearest to ``center``·1; None if no statement covers
    it.

    ===========================================  ========================================
    Aₙ                                           statement
    ===========================================  ========================================
    = A                                          RVG Theorem 2
    any, one column                              VAR (48)
    any, one equation, ``center`` ½              VAR (52)
    A R, RᵀR = I, A of full column rank          VAR (46)
    A R, RᵀR = I, ``center`` ½                   VAR (40)
    A R, RᵀR = I, ``center`` 0                   RVG Theorem 3's objective; its maximum above
    ===========================================  ========================================

    Args:
        center: 0 (``ls``) or ½ (``half_star``).
        A: (m, d), in x itself.
        believed: Aₙ (m, d).
        x: rows (N, d).
    """
    K0, mean = theory.second_moment(x, 0.0), x.mean(axis=0)
    if _close(A, believed):
        return StatedError("RVG Theorem 2", theory.nearest_solution_mse(A, theory.second_moment(x, center)))
    if believed.any() and A.shape[1] == 1:
        return StatedError("VAR (48)", distorted.single_feature_mse(float(K0[0, 0]), A, believed))
    if believed.any() and len(A) == 1 and center == 0.5:
        return StatedError("VAR (52)", distorted.two_class_half_star_mse(A, K0, mean, believed))
    R = _rotation(A, believed)
    return None if R is None else _rotated(center, A, K0, mean, R)


def reflected(center: float, A: Array, x: Array) -> StatedError:
    """The MSE of the solution nearest to ``center``·1 after training on 1 − x: (4/d)Tr(P K_½) more (RVG
    §VII-A).
    """
    plain = theory.nearest_solution_mse(A, theory.second_moment(x, center))
    return StatedError("RVG §VII-A", plain + theory.reflection_gain(A, theory.second_moment(x, 0.5)))


def _rotated(center: float, A: Array, K0: Array, mean: Array, R: Array) -> StatedError:
    determined = row_basis(A).shape[1] == A.shape[1]  # then half* is ls
    upper = distorted.worst_transform(A, K0).mse if center == 0 or determined else math.nan
    if determined:
        return StatedError("VAR (46)", distorted.rotated_ls_mse(K0, R), upper)
    if center == 0:
        return StatedError("RVG Theorem 3", distorted.transformed_ls_mse(A, K0, R.T), upper)
    return StatedError("VAR (40)", distorted.rotated_half_star_mse(A, K0, mean, R))


def _rotation(A: Array, believed: Array) -> Array | None:
    """Some orthonormal R (d, d) with A R = ``believed``, None without one (Procrustes)."""
    U, _, Vt = np.linalg.svd(A.T @ believed)
    R: Array = U @ Vt
    return R if _close(A @ R, believed) else None


def _close(A: Array, B: Array) -> bool:
    return bool(np.linalg.norm(A - B) <= _SAME * np.linalg.norm(A))
