"""White-box model inversion: the input whose embedding comes nearest to the one received (FedAdOb, WMI).

Step 2 of CAFE (Jin et al., 2021). Needs the target's bottom model and its embeddings in prediction.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field

from attacks._inversion import inverted
from vfl.attack import Attack
from vfl.networks.architectures import bottom
from vfl.networks.parameters import from_arrays
from vfl.types import Estimate, Knowledge, statuses
from vfl.view import AdversaryView


class WhiteBoxInversion(Attack):
    """min_x ‖G(x) − H‖² + smoothness·TV(x) over the box, G the disclosed bottom model without any passport."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.EMBEDDINGS, Knowledge.PARAMETERS, Knowledge.ARCHITECTURE, Knowledge.METADATA}
    )

    steps: int = Field(300, ge=1, description="steps of Adam")
    rate: float = Field(0.05, gt=0, allow_inf_nan=False, description="its first learning rate; it falls to 0")
    smoothness: float = Field(0.1, ge=0, allow_inf_nan=False, description="weight of the total variation")

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d); extra "residual" (N,): ‖G(x̂) − H‖. See :meth:`vfl.attack.Attack.reconstruct`."""
        columns = view.metadata()
        model = bottom(view.architecture(), columns).to(torch.float64)
        from_arrays(model, view.target_network())
        x, residual = inverted(
            model, view.embeddings(), columns, steps=self.steps, rate=self.rate, smoothness=self.smoothness
        )
        return Estimate(view.target, view.rows, x, statuses(len(x)), {"residual": residual})
