"""Disclose no parameters: the black box of RVG §VI.

Scores stay exact. The linear system loses its A; what is left are the attacks that guess A.
"""

from collections.abc import Mapping

from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim


class WithholdParameters(Defense):
    """Withholds the parameters from every receiver."""

    def on_parameters(self, w: Mapping[str, Array], ctx: Context) -> None:
        """Nothing is disclosed."""

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """The scores do not move."""
        return Claim(argmax=True, scores_exact=True)
