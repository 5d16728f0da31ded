"""The release of scores: softmax of the summed logits, through the coordinator's gate, and the cost in
accuracy.
"""

from collections.abc import Callable

import numpy as np

from vflens.member.gate import ReleaseGate
from vflens.numerics.theory.distortion_theory import logit_moment
from vflens.protocol.checks import part
from vflens.storage.metrics import Metrics, Name
from vflens.types import Array, LabelKind, Point, Released

Logits = Callable[[Released], Array]
Scores = Callable[[Array], Array]


class ScoreRelease:
    """Releases log-probabilities and measures their distance from the exact ones."""

    def __init__(self, gate: ReleaseGate, metrics: Metrics) -> None:
        self._gate, self._metrics = gate, metrics
        self._divergence, self._kept, self._rows = 0.0, 0, 0
        self._moment: Array | float = 0.0  # Σ nnᵀ (k, k) of the noise n on the logits of ``_moved`` rows
        self._moved = 0

    def release(self, own: Released, passive_logits: Logits, scores: Scores) -> Released:
        """The scores of ``own.rows``; ``own``, the active party's partial logits, was checked.

        ``passive_logits`` is called with the unreleased part of ``own``, if any; ``scores`` turns summed
        logits (n, k) into scores.
        """
        exact: list[tuple[Array, Array]] = []

        def compute(fresh: Array) -> Array:
            mine = part(own, fresh)
            exact.append((fresh, scores(passive_logits(mine) + mine.tensor("embedding"))))
            return exact[0][1]

        released = self._gate.release_rows(Point.SCORES, own.exchange, own.rows, compute)
        for fresh, log_c in exact:
            self.compare(log_c, part(released, fresh).tensor("scores"))
        return released

    def record_metrics(self, kind: LabelKind) -> None:
        """Add the number of rows; of classes mean KL(c‖c̃) in nats, the share of rows whose arg-max was kept,
        the second moment of the noise.
        """
        rows = max(self._rows, 1)
        self._metrics.add(Name.PREDICT_ROWS, self._rows)
        if kind == "number":
            return
        self._metrics.add(Name.MEAN_KL, self._divergence / rows, scored_set="predict", rows=self._rows)
        self._metrics.add(Name.ARGMAX_KEPT, self._kept / rows, scored_set="predict", rows=self._rows)
        if self._moved:  # with the target's weights it gives the loss of least squares (RVG Theorem 4)
            moment = np.asarray(self._moment) / self._moved
            self._metrics.add_matrix(Name.SCORE_NOISE, moment, scored_set="predict", rows=self._moved)

    def compare(self, exact: Array, released: Array) -> None:
        """Measure the distance of the ``released`` scores (n, k) from the ``exact`` ones."""
        self._rows += len(exact)
        if (exact == released).all():  # without a defence every arg-max is kept and the divergence is 0
            self._kept += len(exact)
            return
        top = exact == exact.max(axis=1, keepdims=True)
        self._kept += _kept(top, released)
        self._divergence += _divergence(exact, released)
        finite = np.isfinite(exact).all(axis=1) & np.isfinite(released).all(axis=1)
        if finite.any():
            self._moment += finite.sum() * logit_moment((released - exact)[finite])
            self._moved += int(finite.sum())


def _kept(top: Array, released: Array) -> int:
    """Number of rows with an old maximiser among the new ones."""
    return int((top & (released == released.max(axis=1, keepdims=True))).any(axis=1).sum())


def _divergence(exact: Array, released: Array) -> float:
    """Σ over rows of KL(c‖c̃) = Σ c (log c − log c̃); infinite where a possible class got probability 0."""
    possible = exact > -np.inf
    if (released[possible] == -np.inf).any():
        return float("inf")
    log_ratio = exact[possible] - released[possible]
    return float((np.exp(exact[possible]) * log_ratio).sum())
