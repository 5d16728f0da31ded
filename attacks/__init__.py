"""Attacks: one file each; the name of a plug-in is its file's stem."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from vflens.errors import ConfigError, PluginError, ProtocolError, VflensError
from vflens.plugins.attack import LinearAttack
from vflens.registry import ATTACKS
from vflens.types import Array, Estimate, Moments
from vflens.words import counted

#: Sizes of entries whose fourth powers neither overflow nor vanish; estimators need no higher power.
LARGEST, SMALLEST = 1e50, 1e-50


def estimate(
    name: str,
    A: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    rng: np.random.Generator | int | None = None,
    moments: Moments | None = None,
    **params: Any,
) -> Estimate:
    """The estimate of attack ``name`` for A x = b, from plain arrays and without a federation.

    Args:
        name: a linear attack, such as ``"half_star"``.
        A: (m, d), shared by all rows; m may be 0.
        b: (N, m), one right-hand side per row.
        rng: a generator, or the seed of one; fresh entropy if None. Only the attacks that draw need it.
        moments: mean (d,) and covariance (d, d) of x, for the attacks that need them.
        params: the attack's hyper-parameters; arrays where it takes points.

    Raises:
        PluginError: an unknown name, an attack that is not linear, or one that fails.
        ConfigError: a hyper-parameter that the attack does not have, or out of its range; an ``rng`` that is
            neither.
        ProtocolError: an array or moments that are not finite; an array that is not of real numbers, not
            two-dimensional, of entries beyond 1e50 (an A that is not 0 but nowhere above 1e-50 too), or that
            does not match the other.
        KnowledgeError: the attack needs moments that were not given.
    """
    A, b = checked_system(A, b)
    _check_moments(moments, A.shape[1])
    kind = ATTACKS.given.get(name) or _attack(name)
    if not issubclass(kind, LinearAttack):
        raise PluginError(f"attack {name!r} does not solve A x = b: run it on a federation's transcript")
    attack, generator = _configured(kind, name, params), _generator(rng)
    try:
        return attack.solve(A, b, rng=generator, moments=moments)
    except VflensError:
        raise
    except (Exception, SystemExit) as error:  # a plug-in must not end the process
        raise PluginError(f"attack {name!r} failed: {type(error).__name__}: {error}") from error


def checked_system(A: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Array, Array]:
    """``A`` (m, d) and ``b`` (N, m) as float64.

    Raises:
        ProtocolError: as :func:`estimate`.
    """
    A, b = _matrix("A", A), _matrix("b", b)
    if A.shape[0] != b.shape[1]:
        raise ProtocolError(
            f"b has {counted(b.shape[1], 'column')} and A {counted(A.shape[0], 'row')}: give one column of "
            "b per equation of A"
        )
    if 0 < np.abs(A).max(initial=0.0) < SMALLEST:
        raise ProtocolError(f"A holds no entry above {SMALLEST:g}: multiply A and b by one large number")
    return A, b


@cache
def _attack(name: str) -> type:
    """Cached for an installed one, since a look-up reads folders, which can take longer than a batch."""
    return ATTACKS.get(name)


def _configured(kind: type[LinearAttack], name: str, params: Mapping[str, Any]) -> LinearAttack:
    try:
        return kind(**params)
    except ValidationError as error:
        from vflens.config.reading import refused  # only for wrong arguments

        raise refused(error, f"attack {name!r}", kind=kind) from None


def _generator(rng: Any) -> np.random.Generator:
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ConfigError(
            f"rng = {rng!r}: give a numpy Generator, a seed (a whole number from 0), or None"
        ) from None


def _matrix(name: str, value: npt.ArrayLike) -> Array:
    try:
        matrix = np.asarray(value).astype(np.float64, casting="same_kind", copy=False)
    except (TypeError, ValueError):  # text, complex numbers, rows of different lengths
        raise ProtocolError(f"{name} is not an array of real numbers: give float64") from None
    if matrix.ndim != 2:
        raise ProtocolError(
            f"{name} has shape {matrix.shape}: give a two-dimensional array, one row even for one"
        )
    if not np.isfinite(matrix).all():
        raise ProtocolError(f"{name} holds NaN or infinity: leave out the equations that are not finite")
    if np.abs(matrix).max(initial=0.0) > LARGEST:
        raise ProtocolError(f"{name} holds entries beyond {LARGEST:g}: divide A and b by one large number")
    return matrix


def _check_moments(moments: Moments | None, d: int) -> None:
    if moments is None:
        return
    arrays = [moments.mean, moments.covariance] if isinstance(moments, Moments) else [None]
    if not all(isinstance(a, np.ndarray) or (a is None and i) for i, a in enumerate(arrays)):
        raise ProtocolError(f"moments = {moments!r}: give Moments(mean, covariance) of float64 arrays")
    if moments.mean.shape != (d,):
        raise ProtocolError(
            f"moments.mean has shape {moments.mean.shape}: give one mean per column of A, ({d},)"
        )
    if moments.covariance is not None and moments.covariance.shape != (d, d):
        raise ProtocolError(f"moments.covariance has shape {moments.covariance.shape}: give ({d}, {d})")
    given = [moments.mean] if moments.covariance is None else [moments.mean, moments.covariance]
    if not all(np.isfinite(part).all() for part in given):
        raise ProtocolError("moments hold NaN or infinity: leave them out, or give finite ones")
