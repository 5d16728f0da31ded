"""Hijacking with labels: most of what is sent is a classifier's gradient, as in an honest training.

Yao et al., 2025 (NDSS), URVFL: a discriminator with an auxiliary classifier.
"""

from typing import ClassVar

from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vflens.attacks.helpers.networks.hijack import EmbeddedRows, HijackingAttack, distance
from vflens.types import Knowledge


class LabelledHijacking(HijackingAttack):
    """fsha with a critic D that has a classifier C beside it, which learns the labels of the pilot's
    embeddings. The gradient sent is that of the cross-entropy of C(h) with the label of the row, less
    ``drawing`` times the mean D(h). Rows of one label get alike gradients, as detectors expect.
    """

    needs: ClassVar[frozenset[Knowledge]] = HijackingAttack.needs | {Knowledge.OWN_LABELS}
    knows: ClassVar[frozenset[str]] = frozenset({"split_guard", "gradient_scrutinizer"})

    drawing: float = Field(
        0.1, ge=0, allow_inf_nan=False, description="weight of the critic in the gradient that is sent"
    )

    def verdicts(self, classes: int) -> int:
        """The critic's, then a logit of each class."""
        return 1 + classes

    def sent(self, critic: nn.Module, target: EmbeddedRows) -> Tensor:
        found = critic(target.h)
        loss: Tensor = cross_entropy(found[:, 1:], target.y) - self.drawing * found[:, 0].mean()
        return loss

    def judged(self, critic: nn.Module, pilot: EmbeddedRows, target: EmbeddedRows, mixing: Tensor) -> Tensor:
        """See :meth:`HijackingAttack.judged`: the critic's loss, and that of the classifier."""
        apart = distance(critic, pilot.h, target.h, mixing, self.penalty)
        return apart + cross_entropy(critic(pilot.h)[:, 1:], pilot.y)
