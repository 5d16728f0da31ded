"""What an adversary's own columns say of the unknown ones, for attacks that begin with a belief in them.

An equation adds to what own columns already tell. Where rows are known, the belief in a row is what ridge
regression makes of its own columns, and the covariance is that of the errors of the known rows, each left
out. Whether this or the unconditional belief is used is tried on the known rows: no other truth is needed.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from vflens.numerics.imputation import imputation
from vflens.numerics.shrinkage import block_diagonal, shrunk_covariance
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Moments

#: The answer (t, d) of an attack for known rows int32 (t,) with columns (t, d), from moments of these.
Try: TypeAlias = Callable[[Array, Array, Moments], Array]


class Given(NamedTuple):
    """Moments given own columns: of the ``known`` rows that all parties granted, each left out, and of the
    ``asked`` ones; and the ``errors`` of all known rows, by party.
    """

    known: Moments
    asked: Moments
    errors: list[Array]


def given_own(view: AdversaryView) -> Given | None:
    """The moments given the columns of the adversary itself; None where no rows are known."""
    granted = view.known_rows()
    if not granted:
        return None
    fits = [imputation(view.own("features", rows), x) for rows, x in granted]
    covariance = block_diagonal([shrunk_covariance(fit.left_out) for fit in fits])
    common, x = view.common_rows(view.widths())
    places = [np.searchsorted(rows, common) for rows, _ in granted]
    left_out = np.hstack([fit.left_out[at] for fit, at in zip(fits, places, strict=True)])
    asked = np.hstack([fit(view.own("features")) for fit in fits])
    errors = [fit.left_out for fit in fits]
    return Given(Moments(x - left_out, covariance), Moments(asked, covariance), errors)


def conditional(view: AdversaryView, plain: Moments, attack: Try) -> Moments:
    """The moments of the rows of ``view`` given its own columns, or ``plain`` where these serve ``attack`` no
    worse on the known rows, or no rows are known.

    The known rows are left out of the conditional belief in them, and not of ``plain``, which is a little
    favoured. Of several passive parties the trial is on rows that all of them granted; without such the
    beliefs themselves are compared.
    """
    given = given_own(view)
    if given is None:
        return plain
    tried, x = view.common_rows(view.widths())
    if len(tried):
        errors = [squares(attack(tried, x, moments), x) for moments in (given.known, plain)]
    else:
        known = view.known_rows()
        means = np.split(plain.mean, np.cumsum([x.shape[1] for _, x in known])[:-1])
        errors = [
            sum(float((left_out**2).sum()) for left_out in given.errors),
            sum(float(((x - mean) ** 2).sum()) for (_, x), mean in zip(known, means, strict=True)),
        ]
    return plain if errors[0] >= errors[1] else given.asked


def of_rows(moments: Moments | None, rows: Array | int) -> Moments | None:
    """Those of ``rows``, places among those that ``moments`` has a mean of."""
    if moments is None or moments.mean.ndim == 1:
        return moments
    return Moments(moments.mean[rows], moments.covariance)


def squares(answer: Array, x: Array) -> float:
    """Sum of the squared errors of an ``answer`` that was moved into the box."""
    return float(((np.clip(answer, 0, 1) - x) ** 2).sum())
