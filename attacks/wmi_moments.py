"""White-box inversion by an attacker who estimates a passport's γ and β from how embeddings are distributed.

One key serves all rows of an exchange: it scales and shifts each channel, so granted rows and the embeddings
of other rows determine it, without pairs. Then each row from the granted ones of nearest embedding.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from vflens.attacks._inversion import Inversion
from vflens.attacks._passports import Guessed, behind
from vflens.models.networks.architectures import bottom
from vflens.models.networks.parameters import from_arrays
from vflens.plugins.view import AdversaryView
from vflens.types import Array, Estimate, Knowledge

_LEVELS = torch.linspace(0.02, 0.98, 25, dtype=torch.float64)  # the quantiles that are compared
_TRIED = 64  # rows whose inversion chooses between candidates


class MomentInversion(Inversion):
    """γ and β bring the quantiles of each number of G(x_a), over granted rows x_a, nearest to those of H.

    The passport is taken to be around the last convolution, else the last linear layer: each number then
    belongs to one of its channels. Without an activation behind, its quantiles hardly show the sign of γ; the
    covariances between channels do, up to one common sign (:func:`signs`). So γ and β are fitted from both, a
    third candidate takes channel by channel the better fit of the two, and the one whose inversion of some
    rows leaves the least residuals is taken.
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
    rowwise: ClassVar[bool] = False
    exact: ClassVar[bool] = False

    learning_steps: int = Field(200, ge=1, le=1_000_000, description="steps of L-BFGS for γ and β")

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d); extra "residual" (N,): ‖G(x̂) − H‖. See
        :meth:`vflens.plugins.attack.Attack.reconstruct`.
        """
        columns = view.metadata()
        model = bottom(view.architecture(), columns).to(torch.float64)
        from_arrays(model, view.target_network())
        _, features = view.auxiliary()
        model = behind(model, None, Guessed).eval()
        (guessed,) = (m for m in model.modules() if isinstance(m, Guessed))
        embeddings = view.embeddings()

        def misfit(candidate: tuple[Tensor, Tensor]) -> float:
            guessed.take(*candidate)
            return float((self.ends(embeddings[:_TRIED], columns, model, features)[1] ** 2).sum())

        if len(embeddings):
            guessed.take(*min(self._candidates(model, guessed, features, embeddings), key=misfit))
        return self.inverted(view, model, features)

    def _candidates(
        self, model: nn.Module, guessed: Guessed, features: Array, embeddings: Array
    ) -> list[tuple[Tensor, Tensor]]:
        """γ and β fitted from the signs found, from the opposite ones, and channel by channel the better fit
        of both.
        """
        x, h = torch.tensor(features), torch.tensor(embeddings, dtype=torch.float64)
        with torch.no_grad():
            found = signs(model(x), h, len(guessed.scale))
        wanted, bias = torch.quantile(h, _LEVELS, dim=0), guessed.shift.detach().clone()
        fits = []
        for scale in (found, -found):
            guessed.take(scale, bias)
            left = _fit(model, guessed, x, wanted, self.learning_steps)
            fits.append((guessed.scale.detach().clone(), guessed.shift.detach().clone(), left))
        first, second = fits
        better = second[2] < first[2]
        mixed = tuple(torch.where(better, new, old) for new, old in zip(second, first, strict=True))
        return [(fit[0], fit[1]) for fit in (first, second, mixed)]


def signs(g: Tensor, h: Tensor, channels: int) -> Tensor:
    """The sign of γ (channels,), up to one sign for all, from embeddings without γ ``g`` (m, w) and with it
    ``h`` (n, w).

    Where nothing but γ and β stands between them, Corr(h_i, h_j) = sign(γ_i γ_j)·Corr(g_i, g_j): the product
    of both is a matrix of squares between two signs, and its leading eigenvector has them. Of an image's
    places the products are summed.
    """
    products = (_correlations(g, channels) * _correlations(h, channels)).sum(dim=0)
    leading = torch.linalg.eigh(products).eigenvectors[:, -1]
    return torch.where(leading < 0, -1.0, 1.0).to(g)


def _correlations(h: Tensor, channels: int) -> Tensor:
    """Those between channels at each place (places, channels, channels); 0 for a number that is the same in
    all rows.
    """
    deviations = h - h.mean(dim=0)
    z = (deviations / deviations.norm(dim=0).clamp_min(1e-12)).reshape(len(h), channels, -1)
    return torch.einsum("nip,njp->pij", z, z)


def _fit(model: nn.Module, guessed: Guessed, x: Tensor, wanted: Tensor, steps: int) -> Tensor:
    """Bring the quantiles of ``model``'s embeddings of ``x`` nearest to ``wanted`` (levels, w), from where γ
    and β stand.

    What is left of the squared differences, per channel (channels,).
    """
    learned = (guessed.scale, guessed.shift)
    optimizer = torch.optim.LBFGS(
        learned, max_iter=steps, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def misfit() -> Tensor:
        difference: Tensor = torch.quantile(model(x), _LEVELS, dim=0) - wanted
        return (difference**2).reshape(len(_LEVELS), len(guessed.scale), -1).sum(dim=(0, 2))

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = misfit().sum()
        torch.autograd.backward(value, inputs=learned)
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        return misfit()
