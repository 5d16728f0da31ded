"""White-box inversion by an attacker who estimates a passport's γ and β from how embeddings are distributed.

One key serves all rows of an exchange: it scales and shifts each channel, so granted rows and the embeddings of
others tell it, although no pair of them belongs together. Then each row from the granted ones of nearest embedding.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from attacks._inversion import Inversion
from attacks._passports import Guessed, behind
from vfl.networks.architectures import bottom
from vfl.networks.parameters import from_arrays
from vfl.types import Array, Estimate, Knowledge
from vfl.view import AdversaryView

_LEVELS = torch.linspace(0.02, 0.98, 25, dtype=torch.float64)  # the quantiles that are compared
_STARTS = (1.0, -1.0)  # of γ: its sign is not known


class MomentInversion(Inversion):
    """γ and β bring the quantiles of each number of G(x_a), over granted rows x_a, nearest to those of H.

    The passport is taken to be around the last convolution, else the last linear layer: each number then belongs to one of
    its channels. Each channel is tried with either sign of γ first and keeps the better end.
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
        """Columns (N, d); extra "residual" (N,): ‖G(x̂) − H‖. See :meth:`vfl.attack.Attack.reconstruct`."""
        columns = view.metadata()
        model = bottom(view.architecture(), columns).to(torch.float64)
        from_arrays(model, view.target_network())
        _, features = view.auxiliary()
        model = behind(model, None, Guessed)
        if len(view.rows):
            _fit(model, features, view.embeddings(), self.learning_steps)
        return self.inverted(view, model, features)


def _fit(model: nn.Module, features: Array, embeddings: Array, steps: int) -> None:
    """Set γ and β of ``model`` so that its embeddings of ``features`` are distributed as ``embeddings`` are."""
    (guessed,) = (m for m in model.modules() if isinstance(m, Guessed))
    model.eval()
    x, wanted = torch.tensor(features), torch.quantile(torch.tensor(embeddings), _LEVELS, dim=0)
    best: tuple[Tensor, Tensor, Tensor] | None = None
    for sign in _STARTS:
        with torch.no_grad():
            guessed.scale.fill_(sign), guessed.shift.fill_(0.0)
        misfit = _descend(model, guessed, x, wanted, steps)
        end = misfit, guessed.scale.detach().clone(), guessed.shift.detach().clone()
        if best is None:
            best = end
            continue
        better = end[0] < best[0]
        best = tuple(torch.where(better, new, old) for new, old in zip(end, best, strict=True))  # type: ignore[assignment]
    assert best is not None
    with torch.no_grad():
        guessed.scale.copy_(best[1]), guessed.shift.copy_(best[2])


def _descend(model: nn.Module, guessed: Guessed, x: Tensor, wanted: Tensor, steps: int) -> Tensor:
    """Minimise the sum of squared differences of quantiles; what is left of it per channel (outputs,)."""
    optimizer = torch.optim.LBFGS(
        (guessed.scale, guessed.shift), max_iter=steps, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )
    channels = len(guessed.scale)

    def misfit() -> Tensor:
        difference: Tensor = torch.quantile(model(x), _LEVELS, dim=0) - wanted
        return (difference**2).reshape(len(_LEVELS), channels, -1).sum(dim=(0, 2))

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = misfit().sum()
        torch.autograd.backward(value, inputs=[guessed.scale, guessed.shift])
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        return misfit()
