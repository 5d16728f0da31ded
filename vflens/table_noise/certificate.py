"""The certificate of a release: its bounds, for whom, from which data, and what stays unprotected.

It serialises to JSON (``certificate.model_dump_json(indent=2)``). Instead of NaN it has None and a reason. It
omits the seed, the key and the noise.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from vflens.table_noise.accounting import checked_delta, checked_diameter, local_privacy
from vflens.table_noise.bounded import Bounded
from vflens.table_noise.bounds import ColumnBounds, bounds
from vflens.table_noise.correlated import Correlated
from vflens.table_noise.mechanisms import Gaussian, Laplace, Mechanism
from vflens.table_noise.moments import TableMoments
from vflens.table_noise.preserving import Preserving
from vflens.types import Array


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PerFeature(_Part):
    """One column; errors in its squared units, averaged over the rows.

    ``bound``: Cramér–Rao, locally unbiased estimates only. ``share_of_variance``: that bound over the
    column's variance. ``released_error``: of x̄ itself. ``linear_error``, ``linear_r2``: of the best linear
    estimate with known mean and covariance. ``van_trees``: a lower bound for every estimate, averaged over
    the stated prior. None: a constant column.
    """

    column: str
    bound: float
    share_of_variance: float | None
    released_error: float
    linear_error: float
    linear_r2: float | None
    van_trees: float


class CramerRao(_Part):
    """Lower bounds on the squared error of locally unbiased estimates: table, least row, columns."""

    estimators: str = "locally unbiased estimators"
    total: float
    min_row: float
    per_feature: list[PerFeature]
    share_of_total_variance: float | None


class LdpPart(_Part):
    """(ε, δ)-local differential privacy: one row, one release, rows within ``diameter`` of each other.

    ``reason`` says why an ε is None.
    """

    delta: float
    diameter: list[float] | None
    epsilon_theorem: float | None
    epsilon_exact: float | None
    reason: str | None


class ClassifierPart(_Part):
    """The classifier that correlated noise releases exactly; ``preserved`` only if solving again gave the
    same.
    """

    theta: float
    rho: float
    preserved: bool
    relative_change: float
    alpha: list[float]
    beta: float


class Guarantee(_Part):
    """See the module. ``private``: entries computed from private data, for the owner only."""

    mechanism: str
    parameters: dict[str, Any]
    rows: int
    columns: list[str]
    cramer_rao: CramerRao
    prior: str = "Gaussian with the table's own mean and covariance, rows independent"
    ldp: LdpPart
    classifier: ClassifierPart | None
    not_protected: list[str]
    private: list[str]


def certify(
    mechanism: Mechanism,
    moments: TableMoments,
    columns: Sequence[str],
    *,
    delta: float = 1e-5,
    diameter: Array | float | None = None,
    classifier: Mapping[str, Any] | None = None,
    pi_from_data: bool = False,
) -> Guarantee:
    """The certificate of ``mechanism`` on the table with ``moments`` and ``columns``.

    ``diameter`` is *public*, never computed from the table. Without it, or with Π computed from the table, no
    ε holds. ``classifier``, for correlated noise: ``preserving`` (:class:`Preserving`), ``theta``, ``rho``.
    ``pi_from_data``: Π was computed from the table (standardising) and is private too.
    """
    found = bounds(mechanism, moments)
    return Guarantee(
        mechanism=mechanism.name,
        parameters=parameters(mechanism),
        rows=moments.count,
        columns=list(columns),
        cramer_rao=_cramer_rao(found, columns),
        ldp=_ldp(mechanism, delta, diameter, pi_from_data),
        classifier=_classifier(**classifier) if classifier else None,
        not_protected=not_protected(mechanism),
        private=private_entries(mechanism, pi_from_data),
    )


def parameters(mechanism: Mechanism) -> dict[str, Any]:
    """The mechanism's parameters as plain numbers; for correlated noise without v, which is private."""
    match mechanism:
        case Gaussian():
            return {"lambda": mechanism.lam, "pi": mechanism.pi.tolist()}
        case Laplace():
            return {
                "lambda": mechanism.lam,
                "pi": mechanism.pi.tolist(),
                "matched": mechanism.matched,
                "scale": mechanism.scale.tolist(),
            }
        case Bounded():
            return {
                "lambda": mechanism.lam,
                "pi": mechanism.pi.tolist(),
                "lower": mechanism.lower.tolist(),
                "upper": mechanism.upper.tolist(),
                "mean": mechanism.mean().tolist(),
            }
        case Correlated():
            return {"m": mechanism.m}
        case _:
            return {}


def not_protected(mechanism: Mechanism) -> list[str]:
    """What the release reveals in every case, in words."""
    words = [
        "labels: they are released as they are",
        "the number of rows, the names and the order of the columns",
        "membership: whether someone's row is in the table",
        "repeated releases: two releases of one table average the noise, every further one adds to what is "
        "known",
    ]
    if not isinstance(mechanism, Gaussian | Laplace):
        words.append(
            "the last digits: this noise is on no grid, and the last bits of a released number can rule an "
            "original out"
        )
    if isinstance(mechanism, Correlated):
        words += [
            "the classifier: α, β and every slack ξ_i are released exactly",
            "every x_iᵀα: each row's position along the classifier's normal is released exactly",
            "any support row (ω_i > 0) against someone who holds the other support rows: they recover it "
            "exactly",
        ]
    if isinstance(mechanism, Bounded):
        words.append(
            "a row whose released cell lies near the end of the box: the original is then at the other end"
        )
    return words


def private_entries(mechanism: Mechanism, pi_from_data: bool) -> list[str]:
    """Dotted paths of entries computed from private data: for the owner, not for publication."""
    of_table = ["share_of_variance", "linear_error", "linear_r2", "van_trees"]
    entries = ["cramer_rao.share_of_total_variance"]
    if pi_from_data:  # all parameters of the noise follow from the table's deviations
        entries += ["parameters", "cramer_rao.total", "cramer_rao.min_row"]
        of_table += ["bound", "released_error"]
    if isinstance(mechanism, Correlated):  # α and v follow from the table; the release shows α and hides v
        entries += ["cramer_rao.min_row", "classifier"]
        of_table += ["bound", "released_error"]
    return entries + [f"cramer_rao.per_feature[].{name}" for name in of_table]


def _cramer_rao(found: ColumnBounds, columns: Sequence[str]) -> CramerRao:
    rows = zip(
        columns,
        found.cramer_rao,
        found.variance_share,
        found.released,
        found.linear,
        found.linear_r2,
        found.van_trees,
        strict=True,
    )
    whole = float(found.variance.sum())
    return CramerRao(
        total=found.total,
        min_row=found.min_row,
        per_feature=[
            PerFeature(
                column=name,
                bound=float(bound),
                share_of_variance=_number(share),
                released_error=float(released),
                linear_error=float(linear),
                linear_r2=_number(r2),
                van_trees=float(van_trees),
            )
            for name, bound, share, released, linear, r2, van_trees in rows
        ],
        share_of_total_variance=float(found.cramer_rao.sum()) / whole if whole > 0 else None,
    )


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _ldp(mechanism: Mechanism, delta: float, diameter: Array | float | None, pi_from_data: bool) -> LdpPart:
    """The part ``ldp``; for bounded and correlated noise the reason is that no diameter gives an ε."""
    unknown = None
    if pi_from_data:
        unknown = (
            "pi was computed from the table: the size of the noise depends on private data, so no ε holds"
        )
    elif diameter is None and isinstance(mechanism, Gaussian | Laplace):
        unknown = "no public diameter was given: ε is about rows that differ by at most that much"
    checked_delta(delta)
    span = checked_diameter(1.0 if diameter is None else diameter, mechanism.width)
    public = None if diameter is None else span.tolist()
    if unknown:
        return LdpPart(delta=delta, diameter=public, epsilon_theorem=None, epsilon_exact=None, reason=unknown)
    found = local_privacy(mechanism, delta=delta, diameter=span)
    return LdpPart(
        delta=delta,
        diameter=public,
        epsilon_theorem=found.epsilon_theorem,
        epsilon_exact=found.epsilon_exact,
        reason=found.reason,
    )


def _classifier(preserving: Preserving, theta: float, rho: float) -> ClassifierPart:
    return ClassifierPart(
        theta=theta,
        rho=rho,
        preserved=preserving.preserved,
        relative_change=preserving.change,
        alpha=preserving.solution.alpha.tolist(),
        beta=preserving.solution.beta,
    )
