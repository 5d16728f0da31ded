"""The privacy cost of a data party's releases: the budget that refuses one, and the figures of its folder."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from vflens.config import ActiveConfig, PassiveConfig
from vflens.member.accountant import Accountant
from vflens.member.gate import ReleaseGate
from vflens.plugins.defense import GATE_HOOKS
from vflens.protocol.checks import MODEL_VERSION
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.storage.metrics import Metrics, Name
from vflens.types import Claim, Exchange, Phase, Point

_WHAT = {Phase.TRAIN: "a training row", Phase.PREDICT: "a prediction row"}

#: Phase → the names of its releases and their ε.
_FIGURES = {
    Phase.TRAIN: (Name.TRAINING_RELEASES, Name.TRAINING_EPSILON),
    Phase.PREDICT: (Name.PREDICTION_RELEASES, Name.PREDICTION_EPSILON),
}


def releases(federation: VerticalAgreement, party: str) -> Mapping[Phase, tuple[Point, int]]:
    """The hooks at which a row of ``party`` leaves in training and in prediction, and its numbers."""
    if party != federation.active.name:
        embedding = (Point.EMBEDDING, federation.widths[party])
        return {Phase.TRAIN: embedding, Phase.PREDICT: embedding}
    training = {Phase.TRAIN: (Point.GRADIENT, federation.combined_width)}
    if not federation.sent_by_active:  # its part computes the scores: no prediction row leaves
        return training
    return {**training, Phase.PREDICT: (Point.EMBEDDING, federation.sent_by_active)}


class Spending:
    """The accountants of a party's messages in training and in prediction.

    Args:
        config: its configuration.
        claims: what its defences guarantee at a hook.
        federation: gives the numbers per row of a release.
    """

    def __init__(
        self,
        config: PassiveConfig | ActiveConfig,
        claims: Callable[[str], Sequence[Claim]],
        federation: VerticalAgreement,
    ) -> None:
        self._party, self._limits = config.party, config.limits
        self._claims, self._federation = claims, federation

    @cached_property
    def accountants(self) -> Mapping[Phase, Accountant]:
        """One for each phase in which rows leave; of the fitted defences."""
        return {
            phase: Accountant.of(self._claims_of(phase, point), self._limits.delta, width)
            for phase, (point, width) in releases(self._federation, self._party).items()
        }

    def _claims_of(self, phase: Phase, point: Point) -> Sequence[Claim]:
        """Those on what leaves; a gradient follows from its batch's labels, so what holds of them holds of
        it.
        """
        leaving = self._claims(GATE_HOOKS[point])
        if phase is Phase.TRAIN and self._federation.model.mixes_rows:
            leaving = [claim.unbounded() for claim in leaving]
        labels = self._claims("on_batch_labels") if point is Point.GRADIENT else ()
        return [*leaving, *labels]

    def check(self, exchange: Exchange) -> None:
        """Refuse a release that exceeds the budget of its rows.

        Raises:
            StateError: naming the budget.
        """
        self.check_releases(exchange.phase, exchange.round + 1 if exchange.phase is Phase.TRAIN else 1)

    def check_releases(self, phase: Phase, count: int) -> None:
        """Refuse the ``count``-th release of a row in ``phase`` if its budget does not cover it.

        Raises:
            StateError: naming the budget.
        """
        budget = self._limits.epsilon
        if budget is not None and phase in self.accountants:
            self.accountants[phase].check(count, budget, f"{_WHAT[phase]} of {self._party!r}")

    def record(self, metrics: Metrics, gate: ReleaseGate) -> None:
        """The most releases of a training row, and the ε of these and of one prediction; NaN: unknown."""
        predicted = bool(len(gate.released_rows(Point.EMBEDDING, MODEL_VERSION)))
        for phase, count in ((Phase.TRAIN, gate.epochs), (Phase.PREDICT, int(predicted))):
            if count and phase in self.accountants and self.accountants[phase].counts:
                total = self.accountants[phase].total(count)
                releases, epsilon = _FIGURES[phase]
                metrics.add(releases, count, target=self._party)
                metrics.add(epsilon, math.nan if total is None else total, target=self._party)
