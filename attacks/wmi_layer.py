"""White-box inversion behind a secret last layer, such as MID's: a shadow of it from granted rows (ours).

MID puts a linear layer behind the bottom model that is never disclosed. Granted rows' embeddings of training
are what this layer makes of G(x), under noise; predictions have no noise.
"""

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from vflens.attacks.helpers.linear.believed import embedded
from vflens.attacks.helpers.networks.inversion import device_of
from vflens.attacks.wmi_averaged import AveragedInversion, Explained
from vflens.types import Array

_PENALTIES = (1e-10, *np.logspace(-6, 1, 8))  # in units of the largest eigenvalue


class LayerInversion(AveragedInversion):
    """:class:`AveragedInversion` through h ↦ M h + c behind G, by penalised least squares of the granted
    rows' mean embeddings in G of these rows.

    The penalty, and the number of epochs, are those of least error where each granted row in turn is left
    out; s² is that error.
    """

    knows: ClassVar[frozenset[str]] = frozenset({"mid"})

    def explained(self, model: nn.Module, rows: Array, h: Array) -> Explained:
        """G and the layer, and what is left of the embeddings ``h`` (m, w) of ``rows``, each left out."""
        matrix, offset, noise = shadow(embedded(model, rows), h)
        return Explained(nn.Sequential(model, _Affine(matrix, offset).to(device_of(model))), noise)


def shadow(g: Array, h: Array) -> tuple[Array, Array, float]:
    """M (v, w) and c (w,) with h ≈ g M + c for ``g`` (m, v) and ``h`` (m, w), and the mean squared error of
    rows that are left out, by the diagonal of the projection (Golub, Heath and Wahba, 1979, equation 1.3).
    """
    mean, about = g.mean(axis=0), h.mean(axis=0)
    u, s, v = np.linalg.svd(g - mean, full_matrices=False)
    found = []
    for penalty in _PENALTIES:
        shares = s**2 / (s**2 + penalty * max(float(s[0]) ** 2, 1e-300))
        left = (h - about) - (u * shares) @ (u.T @ (h - about))
        own = np.minimum((u**2 * shares).sum(axis=1) + 1 / len(g), 1 - 1e-9)
        found.append((float(((left / (1 - own)[:, None]) ** 2).mean()), shares))
    noise, shares = min(found, key=lambda one: one[0])
    matrix = v.T @ ((shares / np.where(s > 0, s, 1))[:, None] * (u.T @ (h - about)))
    return matrix, about - mean @ matrix, noise


class _Affine(nn.Module):
    """``matrix`` (v, w) and ``offset`` (w,) as a layer."""

    matrix: Tensor
    offset: Tensor

    def __init__(self, matrix: Array, offset: Array) -> None:
        super().__init__()
        self.register_buffer("matrix", torch.tensor(matrix))
        self.register_buffer("offset", torch.tensor(offset))

    def forward(self, h: Tensor) -> Tensor:
        return h @ self.matrix + self.offset
