"""Black-box model inversion: a shadow of the bottom model, learned from granted rows, is inverted.

He et al., 2019; FedAdOb's BMI. The rows' embeddings are those of the last epoch of training.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from vflens.attacks._inversion import Inversion
from vflens.models.networks.architectures import bottom
from vflens.models.networks.generator import keyed
from vflens.plugins.view import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase


class BlackBoxInversion(Inversion):
    """The shadow G' minimises ‖G'(x_a) − H_a‖² over the granted rows x_a, and is inverted from those of
    nearest embedding.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.EMBEDDINGS, Knowledge.AUXILIARY, Knowledge.ARCHITECTURE, Knowledge.METADATA}
    )
    phases: ClassVar[frozenset[Phase]] = frozenset(Phase)

    learning_steps: int = Field(200, ge=1, le=1_000_000, description="steps of L-BFGS for the shadow")

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d); extra "residual" (N,): ‖G'(x̂) − H‖. See
        :meth:`vflens.plugins.attack.Attack.reconstruct`.
        """
        columns = view.metadata()
        rows, features = view.auxiliary()
        with keyed(rng):
            shadow = bottom(view.architecture(), columns).to(torch.float64)
        _learn(shadow, features, view.embeddings(rows, Phase.TRAIN), self.learning_steps)
        return self.inverted(view, shadow, features)


def _learn(shadow: nn.Module, features: Array, embeddings: Array, steps: int) -> None:
    """Least squares of the shadow's embeddings; a weak penalty keeps what the rows do not determine small."""
    shadow.eval()
    x, h = torch.tensor(features), torch.tensor(embeddings)
    optimizer = torch.optim.LBFGS(
        shadow.parameters(),
        max_iter=steps,
        tolerance_grad=1e-12,
        tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        penalty = sum((p**2).sum() for p in shadow.parameters())
        value: Tensor = ((shadow(x) - h) ** 2).sum(dim=1).mean() + 1e-8 * penalty
        torch.autograd.backward(value)
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
