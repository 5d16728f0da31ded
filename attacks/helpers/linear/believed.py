"""Inputs of a network that explain its outputs and are likely under a normal law of the inputs."""

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from vflens.attacks.helpers.networks.inversion import array, device_of
from vflens.attacks.wmi import WhiteBoxInversion
from vflens.numerics.shrinkage import estimated_moments
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Setting, statuses

_FLOOR = 1e-4  # least variance of a number: one that is the same in all granted rows may differ in others


class GrantedRowsInversion(Attack):
    """An inversion of a bottom model whose descents begin at granted rows; in a server of the embeddings that
    a client granted.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {
            Knowledge.EMBEDDINGS,
            Knowledge.PARAMETERS,
            Knowledge.ARCHITECTURE,
            Knowledge.METADATA,
            Knowledge.AUXILIARY,
        }
    )
    exact: ClassVar[bool] = False
    settings: ClassVar[frozenset[Setting]] = frozenset(Setting)

    starts: int = Field(3, ge=1, le=1_000, description="granted rows where a row's descents begin")
    steps: int = Field(300, ge=1, le=1_000_000, description="steps of Adam from each")
    rate: float = Field(
        0.05, gt=0, allow_inf_nan=False, description="Adam's first learning rate; it falls to 0"
    )


class Believed(nn.Module):
    """(G(x), √``noise``·L(x − μ)) for rows x (n, d), where LᵀL = Σ⁻¹: its squared distance from (h, 0) is
    2·``noise`` times the negative logarithm of the posterior density of x, but for a constant.

    h is G(x) under normal noise of that variance, x ~ N(μ, Σ); both moments are estimated from ``rows``.
    """

    mean: Tensor
    root: Tensor

    def __init__(self, model: nn.Module, rows: Array, noise: float) -> None:
        super().__init__()
        self.model = model
        mean, precision = beliefs_of(rows)
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("root", torch.tensor(np.sqrt(noise) * np.linalg.cholesky(precision)))
        self.to(device_of(model))

    def forward(self, x: Tensor) -> Tensor:
        """(n, w + d)."""
        return torch.cat([self.model(x), (x - self.mean) @ self.root], dim=1)


def beliefs_of(rows: Array) -> tuple[Array, Array]:
    """Mean (d,) and precision (d, d) of what ``rows`` (m, d) are drawn from; of one row those of any number
    in [0, 1].
    """
    mean, covariance = estimated_moments(rows)
    covariance = np.eye(len(mean)) / 12 if covariance is None else covariance
    precision: Array = np.linalg.inv(covariance + _FLOOR * np.eye(len(mean)))
    return mean, (precision + precision.T) / 2


def likeliest(
    view: AdversaryView, model: nn.Module, h: Array, noise: float, descent: WhiteBoxInversion
) -> Estimate:
    """The likeliest inputs in the box for outputs ``h`` (n, w) of ``model``, from the granted rows of nearest
    output; extra "residual" (n,): the root of what :class:`Believed` measures.
    """
    rows = view.auxiliary()[1]
    asked = np.concatenate([h, np.zeros((len(h), rows.shape[1]))], axis=1)
    believed = Believed(model, rows, noise).eval()
    x, residual = descent.ends(asked, view.metadata(), believed, rows, progress=view.progress)
    return Estimate(view.target, view.rows, x, statuses(len(x)), extras={"residual": residual})


def embedded(model: nn.Module, rows: Array) -> Array:
    """What ``model`` makes (n, w) of ``rows`` (n, d)."""
    with torch.no_grad():
        return array(model(torch.tensor(rows, device=device_of(model))))
