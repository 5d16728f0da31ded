"""Rows of an estimate, solved again from the attack's definition, and how far the two answers are apart."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from vflens.errors import ConfigError, KnowledgeError
from vflens.types import Array, Estimate, Moments, RowStatus
from vflens.verification import programs
from vflens.words import counted

Solve: TypeAlias = Callable[[Array, Array], Array]  # A (m, d), b (m,) → x (d,)


def definition(attack: str, params: Mapping[str, Any], moments: Moments | None = None) -> Solve:
    """The convex program that defines ``attack`` with these parameters, for one row.

    Raises:
        ConfigError: as :func:`check_defined`.
        KnowledgeError: it needs moments that are not given.
    """
    check_defined(attack, params)
    return _DEFINITIONS[attack](params, moments)


def check_defined(attack: str, params: Mapping[str, Any]) -> None:
    """Refuse an attack that cannot be solved again.

    Raises:
        ConfigError: no convex program defines it, or it starts from draws, which are not kept.
    """
    if attack not in _DEFINITIONS:
        raise ConfigError(
            f"attack {attack!r} is not defined by a convex program and cannot be verified: "
            f"choose {', '.join(sorted(_DEFINITIONS))}"
        )
    if attack == "cls" and isinstance(params.get("start"), str) and params["start"] == "random":
        raise ConfigError(
            "cls with start = random cannot be verified, its starts are not kept: choose another"
        )


@dataclass(frozen=True, eq=False)
class Verification:
    """``rows`` int32 (n,) of an estimate by ``attack``, and how far each is from its definition's solution.

    ``differences`` (n,): the largest over the columns, in units of columns scaled to [0, 1]. ``certificate``:
    the largest "residual" and "gap" of these rows, where the estimate has them (``docs/estimators.md``). Rows
    that did not converge claim nothing and are left out.
    """

    attack: str
    rows: Array
    differences: Array
    certificate: Mapping[str, float]

    @property
    def largest(self) -> float:
        """The largest difference; NaN without any row."""
        return float(self.differences.max()) if len(self.rows) else float("nan")

    def __str__(self) -> str:
        if not len(self.rows):
            return f"{self.attack}: no row converged, so that there is nothing to verify"
        worst = self.rows[self.differences.argmax()]
        certified = "".join(f"; {name} at most {size:.1e}" for name, size in self.certificate.items())
        return (
            f"{self.attack}: {counted(len(self.rows), 'row')} solved again in CVXPY differ by at most "
            f"{self.largest:.1e} (row {worst}){certified}"
        )


def sample(estimate: Estimate, rows: int, rng: np.random.Generator) -> Array:
    """The places (n,) of at most ``rows`` rows of ``estimate`` that converged, drawn at random, sorted.

    Raises:
        ConfigError: ``rows`` is not at least 1.
    """
    if rows < 1:
        raise ConfigError(f"verify {counted(rows, 'row')}: give at least 1")
    able = np.flatnonzero(estimate.status != RowStatus.NOT_CONVERGED)
    return np.sort(rng.permutation(able)[:rows])


def solved(solve: Solve, A: Array, b: Array) -> Array:
    """The definition's solution (n, d) for each row of ``b`` (n, m)."""
    return np.array([solve(A, row) for row in b]).reshape(len(b), A.shape[1])


def compared(attack: str, estimate: Estimate, places: Array, again: Array) -> Verification:
    """The rows of ``estimate`` at ``places`` (n,) beside ``again`` (n, d), from :func:`solved`."""
    differences = np.abs(estimate.values[places] - again).max(axis=1, initial=0.0)
    certificate = {
        name: float(estimate.extras[name][places].max())
        for name in ("residual", "gap")
        if name in estimate.extras and len(places)
    }
    return Verification(attack, estimate.rows[places], differences, certificate)


def _nearest(center: float, params: Mapping[str, Any], moments: Moments | None) -> Solve:
    return lambda A, b: programs.nearest(A, b, np.full(A.shape[1], center))


def _clamped_ls(params: Mapping[str, Any], moments: Moments | None) -> Solve:
    return lambda A, b: programs.clipped(programs.nearest(A, b, np.zeros(A.shape[1])))


def _mean_star(params: Mapping[str, Any], moments: Moments | None) -> Solve:
    mean = _given(moments).mean
    return lambda A, b: programs.nearest(A, b, mean)


def _lmmse(params: Mapping[str, Any], moments: Moments | None) -> Solve:
    known = _given(moments)
    covariance = known.covariance
    if covariance is None:
        raise KnowledgeError("lmmse needs the columns' covariance to be verified: give moments with one")
    return lambda A, b: programs.lmmse(A, b, known.mean, covariance)


def _in_box(program: Solve, params: Mapping[str, Any], moments: Moments | None) -> Solve:
    """``program`` where the box holds a solution; else the point of least residual nearest to ½·1."""

    def solve(A: Array, b: Array) -> Array:
        try:
            return program(A, b)
        except programs.NoSolutionError:
            return programs.nearest_of_least_residual(A, b, np.full(A.shape[1], 0.5))

    return solve


def _cls(params: Mapping[str, Any], moments: Moments | None) -> Solve:
    start, constant = params.get("start", "clamped_ls"), {"zero": 0.0, "half": 0.5}
    from_ls = _clamped_ls(params, moments)

    def solve(A: Array, b: Array) -> Array:
        if isinstance(start, str):
            center = np.full(A.shape[1], constant[start]) if start in constant else from_ls(A, b)
        else:
            center = np.asarray(start)
        return programs.nearest_of_least_residual(A, b, center)

    return solve


def _given(moments: Moments | None) -> Moments:
    if moments is None:
        raise KnowledgeError("the columns' moments are missing: give those that the attack was given")
    return moments


_DEFINITIONS: Mapping[str, Callable[[Mapping[str, Any], Moments | None], Solve]] = {
    "ls": partial(_nearest, 0.0),
    "clamped_ls": _clamped_ls,
    "half_star": partial(_nearest, 0.5),
    "mean_star": _mean_star,
    "lmmse": _lmmse,
    "rcc1": partial(_in_box, programs.rcc1),
    "rcc2": partial(_in_box, programs.rcc2),
    "chebyshev": partial(_in_box, programs.chebyshev),
    "cls": _cls,
}
