"""``vflens attack --verify``: rows of a recorded attack's estimate, solved again from its definition."""

from collections.abc import Callable

import numpy as np

from vflens.plugins.attack import Attack, LinearAttack
from vflens.plugins.conditional import of_rows
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Document, Estimate


def check_verifiable(name: str, attack: Attack) -> None:
    """Refuse an attack that :func:`verified` cannot verify, before minutes of work.

    Raises:
        ConfigError: CVXPY is not installed, or no convex program defines the attack.
    """
    from vflens.verification.rows import check_defined

    check_defined(name, attack.model_dump())


def verified(
    name: str, attack: Attack, estimate: Estimate, see: Callable[..., AdversaryView], *, rows: int
) -> Document:
    """At most ``rows`` rows of ``estimate``, by linear attack ``name``, beside its definition's solutions.

    ``see`` gives the attack's view of ``rows``. The same estimate gives the same draw of rows.

    Returns:
        "verified": how many ``rows``, the ``largest_difference``, and all of it in ``words``.
    """
    from vflens.verification.rows import compared, definition, sample

    assert isinstance(attack, LinearAttack)  # all that are defined by a program
    places = sample(estimate, rows, np.random.default_rng(0))
    view = see(rows=estimate.rows[places])
    params, moments = attack.model_dump(), attack.moments_of(view, rng=np.random.default_rng(0))
    again = np.empty((len(places), estimate.values.shape[1]))
    for some, system in attack.systems(view) if len(places) else ():
        for place, b in zip(some, system.b, strict=True):
            solve = definition(name, params, of_rows(moments, place))
            again[place] = solve(system.A, b)[view.columns()]
    found = compared(name, estimate, places, again)
    return {"verified": {"rows": len(found.rows), "largest_difference": found.largest, "words": str(found)}}
