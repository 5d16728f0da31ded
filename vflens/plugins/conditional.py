"""What an adversary's own columns say of the unknown ones, for attacks that begin with a belief in them.

An equation adds to what own columns already tell. Where rows are known, the belief in a row is what ridge
regression makes of its own columns, and the covariance is that of the errors of the known rows, each left
out. Whether this or the unconditional belief is used is tried on the known rows: no other truth is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TypeAlias

import numpy as np

from vflens.numerics.imputation import FittedImputation, imputation
from vflens.numerics.shrinkage import block_diagonal, shrunk_covariance
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Moments

#: The answer (t, d) of an attack for known rows int32 (t,) with columns (t, d), from moments of these.
Try: TypeAlias = Callable[[Array, Array, Moments], Array]


def conditional(view: AdversaryView, plain: Moments, attack: Try) -> Moments:
    """The moments of the rows of ``view`` given its own columns, or ``plain`` where these serve ``attack`` no
    worse on the known rows, or no rows are known.

    The known rows are left out of the conditional belief in them, and not of ``plain``, which is a little
    favoured. Of several passive parties the trial is on rows that all of them granted; without such the
    beliefs themselves are compared.
    """
    known = view.known_rows()
    if not known:
        return plain
    fits = [imputation(view.own("features", rows), x) for rows, x in known]
    covariance = block_diagonal([shrunk_covariance(fit.left_out) for fit in fits])
    tried, x, left_out = _common(known, fits)
    if len(tried):
        errors = [
            _squares(attack(tried, x, moments), x)
            for moments in (Moments(x - left_out, covariance), Moments(plain.mean, plain.covariance))
        ]
    else:
        ends = np.cumsum([x.shape[1] for _, x in known])[:-1]
        means = np.split(plain.mean, ends)
        errors = [
            sum(float((fit.left_out**2).sum()) for fit in fits),
            sum(float(((x - mean) ** 2).sum()) for (_, x), mean in zip(known, means, strict=True)),
        ]
    if errors[0] >= errors[1]:
        return plain
    return Moments(np.hstack([fit(view.own("features")) for fit in fits]), covariance)


def of_rows(moments: Moments | None, rows: Array | int) -> Moments | None:
    """Those of ``rows``, places among those that ``moments`` has a mean of."""
    if moments is None or moments.mean.ndim == 1:
        return moments
    return Moments(moments.mean[rows], moments.covariance)


def _common(known: list[tuple[Array, Array]], fits: list[FittedImputation]) -> tuple[Array, Array, Array]:
    """The rows int32 (t,) that all parties granted, their columns (t, d), and the errors (t, d) of these when
    left out.
    """
    tried = reduce(np.intersect1d, [rows for rows, _ in known])
    places = [np.searchsorted(rows, tried) for rows, _ in known]  # a party grants its rows in order
    x = np.hstack([x[at] for (_, x), at in zip(known, places, strict=True)])
    return tried, x, np.hstack([fit.left_out[at] for fit, at in zip(fits, places, strict=True)])


def _squares(answer: Array, x: Array) -> float:
    return float(((np.clip(answer, 0, 1) - x) ** 2).sum())
