"""Shared by both agnostic attacks: solve with the scores of the adversary's own classifier (VAR §IV)."""

from typing import Literal

import numpy as np

from vflens.numerics.linear_system import first_differences, nearest_solution, residual_norm
from vflens.numerics.theory.agnostic import padded
from vflens.plugins.conditional import conditional
from vflens.plugins.declared import Stated
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Moments, statuses

Outside = Literal["clip", "half_value", "half_row", "keep"]
OUTSIDE = (
    "values outside [0, 1]: clip them, replace each by ½, replace its whole row by ½, "
    "or keep them, as the theory does"
)

STATED = Stated(center=0.5, if_determined=0.0, guessed=True)


def solve_with_classifier(view: AdversaryView, theta: Array, outside: Outside) -> Estimate:
    """All unknown columns: LS if there are fewer unknown columns than classes, half* otherwise, on b' = J(ln
    ĉ − known logits); around what the own columns say where rows are known and that errs less on them.

    Every row is OK, although ĉ satisfies no equation exactly. Extras: "residual", and the
    "logits" (N, k) of ĉ.
    """
    weight, bias = view.unknown_parameters()
    J = first_differences(view.n_classes)
    A = J @ weight

    def right_side(features: Array) -> tuple[Array, Array]:
        logits = padded(features) @ theta.T
        return logits, (logits - features @ view.own("parameters").T - bias) @ J.T

    def tried(rows: Array, x: Array, moments: Moments) -> Array:
        return nearest_solution(A, right_side(view.own("features", rows))[1], moments.mean)

    center = np.full(weight.shape[1], STATED.center_of(weight.shape[1], view.n_classes))
    logits, b = right_side(view.own("features"))
    x = inside(nearest_solution(A, b, conditional(view, Moments(center), tried).mean), outside)
    extras = {"residual": residual_norm(A, b, x), "logits": logits}
    return Estimate(view.target, view.rows, x, statuses(len(x)), extras=extras)


def inside(x: Array, outside: Outside) -> Array:
    """``x`` (N, d) brought into the box, or not, as :data:`OUTSIDE` says."""
    out = (x < 0) | (x > 1)
    answers = {
        "clip": np.clip(x, 0, 1),
        "half_value": np.where(out, 0.5, x),
        "half_row": np.where(out.any(axis=1, keepdims=True), 0.5, x),
        "keep": x,
    }
    return answers[outside]
