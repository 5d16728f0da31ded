"""Distance correlation: train embeddings that vary little with what they must not reveal.

At a passive party that is its inputs (NoPeek, Vepakomma et al., 2020). At the active party it is the labels
(Sun et al., 2022), which it alone has: its gradient trains the passive parties to hide them. Split networks
only.
"""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from vflens.plugins.defense import Context, Defense

_NONE = 1e-12  # of dCor²: below this nothing is left to reduce


class DistanceCorrelation(Defense):
    """Loss + α·log dCor(H, V) of each batch: H the embedding, V the inputs, at the active party the labels.

    There H are the combined embeddings: with several passive parties nothing is asked of each of them alone.
    dCor is of a whole batch: at the active party the label of a row moves the gradients of the others.
    """

    unclaimed: ClassVar[str] = "a small correlation in training is no bound on what can be learned from H"
    mixes_rows: ClassVar[bool] = True

    alpha: float = Field(0.1, gt=0, le=1e6, description="weight of log dCor in the loss")

    def penalty(self, m: nn.Module, h: Tensor, private: Tensor, ctx: Context) -> Tensor:
        """α·log dCor, at least α·log 10⁻⁶."""
        return self.alpha * 0.5 * squared_correlation(h, private).clamp(min=_NONE).log()


def squared_correlation(a: Tensor, b: Tensor) -> Tensor:
    """DCor² of rows a (n, ·) and b (n, ·) (Székely et al., 2007, definition 5); 0 where one does not vary."""
    a, b = _centred_distances(a), _centred_distances(b)
    spread = (a.square().mean() * b.square().mean()).sqrt()
    covariance = (a * b).mean()
    return covariance / spread if spread > 0 else covariance * 0


def _centred_distances(rows: Tensor) -> Tensor:
    """Distances (n, n) of ``rows``, less the means of row and column."""
    # By matrix products equal rows would be slightly apart, with a huge gradient.
    distances = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    return distances - distances.mean(0) - distances.mean(1, keepdim=True) + distances.mean()
