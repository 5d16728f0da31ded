"""Feature-space hijacking: the gradient sent draws the target's embeddings to those of an own network.

Pasquini et al., 2021 (CCS), §4 and its Wasserstein variant with a gradient penalty.
"""

from torch import Tensor, nn

from vflens.attacks.helpers.networks.hijack import EmbeddedRows, HijackingAttack, distance


class FeatureSpaceHijacking(HijackingAttack):
    """A pilot f̃ and its inverse d learn from public rows, min ‖d(f̃(x)) − x‖², and a critic D to tell f̃(x)
    from the target's embeddings h. The gradient sent is that of −mean D(h): the target's model becomes like
    f̃, and d inverts it. The federation's model learns nothing.
    """

    def verdicts(self, classes: int) -> int:
        """One, larger for the pilot's."""
        return 1

    def sent(self, critic: nn.Module, target: EmbeddedRows) -> Tensor:
        """See :meth:`HijackingAttack.sent`: −mean D(h)."""
        loss: Tensor = -critic(target.h).mean()
        return loss

    def judged(self, critic: nn.Module, pilot: EmbeddedRows, target: EmbeddedRows, mixing: Tensor) -> Tensor:
        return distance(critic, pilot.h, target.h, mixing, self.penalty)
