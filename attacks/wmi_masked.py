"""White-box inversion of sparse embeddings: a number that was not sent says that it is small (ours).

Sparsification sends the largest numbers of an embedding as they are. An attacker who takes the others to be 0
looks for rows that there are none of.
"""

from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from vflens.attacks.helpers.linear.believed import GrantedRowsInversion, likeliest
from vflens.attacks.helpers.networks.inversion import target_model
from vflens.attacks.wmi import WhiteBoxInversion
from vflens.models.networks.parameters import from_arrays
from vflens.plugins.steps import Steps
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate


class MaskedInversion(GrantedRowsInversion):
    """x̂ = argmin Σ_j∈S (G_j(x) − h_j)² + Σ_j∉S max(0, |G_j(x)| − τ)² + s²·(x − μ)ᵀΣ⁻¹(x − μ) in the box.

    S are the numbers of a row that were sent, those that are not 0, and τ is the least of their sizes. μ and
    Σ are the moments of the granted rows, s² is ``noise`` times the mean square of the embeddings.
    """

    rowwise: ClassVar[bool] = False
    knows: ClassVar[frozenset[str]] = frozenset({"sparsification"})

    noise: float = Field(
        0.01, gt=0, allow_inf_nan=False, description="what a number may differ by, as a share of its square"
    )

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d); extra "residual" (N,), see
        :func:`vflens.attacks.helpers.linear.believed.likeliest`. See
        :meth:`vflens.plugins.attack.Attack.reconstruct`.
        """
        model = target_model(view)
        from_arrays(model, view.target_network())
        h = view.embeddings().astype(np.float64)
        noise = self.noise * max(float((h**2).mean()) if h.size else 0.0, 1e-300)
        descent = _Descent(starts=self.starts, steps=self.steps, rate=self.rate, smoothness=0.0)
        return likeliest(view, model.eval(), h, noise, descent)


class _Descent(WhiteBoxInversion):
    """A descent to rows of which only the numbers that were sent are known."""

    def _descended(
        self, model: nn.Module, h: Tensor, first: Tensor, *given: Any, step: Steps
    ) -> tuple[Array, Array]:
        return super()._descended(Sparse(model, h, first.shape[1]), h, first, *given, step=step)


class Sparse(nn.Module):
    """What ``model`` gives, where ``h`` (n, w) is 0 only as far as it is larger than the least number of its
    row in ``h``; the last ``whole`` numbers are all known.
    """

    def __init__(self, model: nn.Module, h: Tensor, whole: int) -> None:
        super().__init__()
        self.model, known = model, torch.arange(h.shape[1], device=h.device) >= h.shape[1] - whole
        sent = (h != 0) & ~known
        sizes = torch.where(sent, h.abs(), torch.inf).min(dim=1, keepdim=True).values
        self._least, self._known = torch.where(torch.isinf(sizes), 0.0, sizes), sent | known

    def forward(self, x: Tensor) -> Tensor:
        """(n, w); row i of ``x`` is that of row i of ``h``."""
        g: Tensor = self.model(x)
        beyond = g - torch.maximum(torch.minimum(g, self._least), -self._least)
        return torch.where(self._known, g, beyond)
